#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "apps/layline/browser.h"
#include "apps/layline/command.h"
#include "apps/layline/report_files.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/report/paper.h"
#include "layline/report/runs_report.h"
#include "layline/report/writers.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

namespace fs = std::filesystem;

struct ReportFlags {
  std::vector<std::string> runs;
  std::string output, format, charts, engine, cluster, calibration, data;
  int64_t sample = 0;
  bool json = false;
};

const std::vector<std::string> kFormats = {"html", "text", "markdown", "json"};

// As said, else as the name of the output ends, else text for the terminal.
std::string format_of(const ReportFlags& flags) {
  if (flags.json && !flags.format.empty() && flags.format != "json") {
    throw base::InputError("--json", fmt::format("is there, and --format {} too", flags.format));
  }
  if (flags.json) return "json";
  return flags.format.empty() ? report_format(flags.output) : flags.format;
}

bool is_paper(const ReportFlags& flags) { return flags.runs.size() == 1 && flags.runs.front() == "paper"; }

report::Report make_paper(const ReportFlags& flags) {
  for (const std::string* flag : {&flags.engine, &flags.cluster, &flags.calibration}) {
    if (!flag->empty()) {
      throw base::InputError("report paper",
                             "takes no --engine, --cluster or --calibration: its predictions leave out "
                             "what they predict");
    }
  }
  if (flags.sample > 0) throw base::InputError("report paper", "takes no --sample: it shows every run");
  const std::string folder = flags.data.empty() ? find_published_data() : flags.data;
  const ReportTables read = read_report_tables(csv_files_of(folder), 0);
  const auto sink = progress_sink();
  std::optional<base::Progress> progress;
  report::PaperOptions options;
  options.progress = [&](size_t, size_t total) {
    if (!progress) progress.emplace(sink.get(), "refitting", static_cast<int64_t>(total));
    progress->advance();
  };
  return report::paper_report(read.tables, options);
}

report::Report make_report(const ReportFlags& flags) {
  if (is_paper(flags)) return make_paper(flags);
  if (!flags.data.empty()) throw base::InputError("--data", "is for `layline report paper`; give the files instead");
  if (!flags.engine.empty()) spec::get_engine(flags.engine);  // of a column it may be unknown, of a flag not
  const ReportTables read = read_report_tables(flags.runs, flags.sample);
  return report::runs_report(
      read.tables,
      {.engine = flags.engine, .cluster = flags.cluster, .calibration = flags.calibration, .sampling = read.sampling});
}

size_t num_charts(const report::Report& report) {
  size_t count = 0;
  for (const report::Section& section : report.sections) count += section.charts.size();
  return count;
}

// All or nothing: the charts are drawn before the first file is written.
void write_charts(const report::Report& report, const std::string& folder) {
  const std::string browser = find_browser();
  if (browser.empty()) {
    throw base::InputError("--charts", "drawing SVG and PNG needs Chromium on the PATH (Debian's package chromium)");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) throw base::InputError(folder, "cannot be made a folder");
  for (const auto& [id, image] : draw_charts(browser, report::to_export_page(report))) {
    base::write_file_atomically((fs::path(folder) / (id + ".svg")).string(), image.svg);
    base::write_file_atomically((fs::path(folder) / (id + ".png")).string(), image.png);
  }
}

void run_report(const ReportFlags& flags) {
  const std::string format = format_of(flags);
  if (format == "html" && flags.output.empty()) {
    throw base::InputError("--format html", "needs --output R.html");
  }
  const report::Report report = make_report(flags);
  if (!flags.charts.empty()) write_charts(report, flags.charts);
  const std::string text = written_report(report, format);
  if (flags.output.empty()) {
    if (flags.charts.empty() || !flags.format.empty() || flags.json) return print(text);
    return print(fmt::format("{}: {} charts as SVG and PNG\n", flags.charts, num_charts(report)));
  }
  base::write_file_atomically(flags.output, text);
  if (flags.output == "/dev/stdout") return;
  print(fmt::format("{}: {} sections, {} charts, {}\n", flags.output, report.sections.size(), num_charts(report),
                    base::format_bytes(static_cast<double>(text.size()))));
}

}  // namespace

void add_report(CLI::App& app) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report",
      "Charts and tables of recorded runs beside their predictions, as one page; `report paper`: the paper's");
  command->add_option("runs", flags->runs, "run records (CSV), or the word paper for the published runs of the paper")
      ->required()
      ->type_name("RUNS.csv");
  command->add_option("--output", flags->output, "file to write; its ending says the format (.html, .md, .json, .txt)");
  command->add_option("--format", flags->format, "html, text, markdown or json")->check(CLI::IsMember(kFormats));
  command->add_flag("--json", flags->json, "the same as --format json");
  command->add_option("--charts", flags->charts, "folder for every chart as SVG and PNG (needs Chromium)");
  command->add_option("--engine", flags->engine, "engine of all runs, instead of the engine column");
  command->add_option("--cluster", flags->cluster, "cluster of the runs whose hardware column names it");
  command->add_option("--calibration", flags->calibration,
                      "calibration file or name, or none (default: the shipped ones)");
  command->add_option("--data", flags->data, "with paper: folder of the published runs (default: data/published)");
  command->add_option("--sample", flags->sample, "of larger files, take so many runs, spread evenly")
      ->check(CLI::Range(int64_t{1}, kMaxReportRows));
  command->footer(
      "Example: layline report data/published/hagemann2024_a100.csv --output runs.html\n"
      "         layline report paper --output paper.html");
  command->callback([flags] { run_report(*flags); });
}

}  // namespace layline::app
