#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "layline/base/file.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/calibrate/validate.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

struct CalibrateFlags {
  std::vector<std::string> files;
  std::string engine, cluster, gpu, output, leave_out = "sweep";
  bool json = false;
};

std::string summary(const spec::Calibration& calibration) {
  std::string text =
      fmt::format("{}: {} timed runs, {} verdicts\n", calibration.name, base::format_count(calibration.num_timed_runs),
                  base::format_count(calibration.num_verdict_runs));
  text += fmt::format("step time in sample: mean {}, median {}\n",
                      base::format_percent(calibration.mean_abs_relative_error),
                      base::format_percent(calibration.median_abs_relative_error));
  base::TextTable table({{.title = "left out", .can_shorten = true},
                         {.title = "runs", .align = base::Align::kRight},
                         {.title = "mean %", .align = base::Align::kRight},
                         {.title = "median %", .align = base::Align::kRight}});
  for (const spec::LeftOutError& left : calibration.left_out) {
    table.add_row({left.name, base::format_count(left.num_runs),
                   base::format_percent_number(left.mean_abs_relative_error),
                   base::format_percent_number(left.median_abs_relative_error)});
  }
  text += "\n" + table.render(text_style());
  base::TextTable values({{.title = "coefficient"},
                          {.title = "fitted", .align = base::Align::kRight},
                          {.title = "default", .align = base::Align::kRight},
                          {.title = "unit"},
                          {.title = "meaning", .drop_priority = 1, .can_shorten = true}});
  for (const auto& [name, value] : calibration.values) {
    const spec::CoefficientInfo& info = *spec::find_coefficient(name);
    values.add_row({name, fmt::format("{:.4g}", value), fmt::format("{:.4g}", info.default_value),
                    std::string(info.unit), std::string(info.meaning)});
  }
  text += "\n" + values.render(text_style());
  text += fmt::format("\nerror bar: real times within ± {} of the prediction (nine of ten left-out runs)\n",
                      base::format_percent(calibration.relative_error_bar));
  return text;
}

void run_calibrate(const CalibrateFlags& flags) {
  std::vector<runs::RunTable> tables;
  for (const std::string& file : flags.files) tables.push_back(runs::read_runs(file));
  const auto sink = progress_sink();
  std::optional<base::Progress> progress;
  calibrate::CalibrateOptions options;
  options.engine = flags.engine;
  options.cluster = flags.cluster;
  options.gpu = flags.gpu;
  options.leave_out = flags.leave_out == "model" ? calibrate::LeaveOut::kModel : calibrate::LeaveOut::kSweep;
  options.progress = [&](size_t, size_t total) {
    if (!progress) progress.emplace(sink.get(), "fitting", static_cast<int64_t>(total));
    progress->advance();
  };
  const spec::Calibration calibration = calibrate::calibrate(tables, options);
  progress.reset();
  base::write_file_atomically(flags.output, spec::to_json(calibration));
  print(flags.json ? spec::to_json(calibration) : summary(calibration));
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit an engine's coefficients to recorded runs");
  command->add_option("runs", flags->files, "run records (CSV)")->required()->type_name("RUNS.csv");
  command->add_option("--engine", flags->engine, "learn from the runs of this engine")->required();
  command->add_option("--cluster", flags->cluster,
                      "cluster of the runs whose hardware column names it: what `layline bench` wrote, or any other");
  command->add_option("--gpu", flags->gpu, "learn from the runs on this GPU's family (default: that of the first run)");
  command->add_option("--output", flags->output, "calibration file to write")->required();
  command->add_option("--leave-out", flags->leave_out, "what the printed errors leave out")
      ->check(CLI::IsMember({"sweep", "model"}));
  command->add_flag("--json", flags->json, "print the calibration as JSON");
  command->footer(
      "Example: layline calibrate data/published/hagemann2024_a100.csv --engine aleph-scaling --output mine.json");
  command->callback([flags] { run_calibrate(*flags); });
}

}  // namespace layline::app
