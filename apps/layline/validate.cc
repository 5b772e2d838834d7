#include "layline/calibrate/validate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/runs/csv.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;

struct ValidateFlags {
  std::vector<std::string> files;
  std::string engine, cluster, calibration, leave_out = "none", predictions;
  bool json = false;
};

ordered_json value_or_null(const std::optional<double>& value) { return value ? ordered_json(*value) : nullptr; }

ordered_json to_json(const calibrate::Scores& s) {
  ordered_json json;
  json["num_runs"] = s.num_runs;
  json["num_timed"] = s.num_timed;
  json["num_unscored"] = s.num_unscored;
  json["mean_abs_relative_error"] = value_or_null(s.mean_abs_relative_error);
  json["median_abs_relative_error"] = value_or_null(s.median_abs_relative_error);
  json["bias"] = value_or_null(s.bias);
  json["error_bar_coverage"] = value_or_null(s.error_bar_coverage);
  json["spearman"] = value_or_null(s.spearman);
  json["top1_regret"] = value_or_null(s.top1_regret);
  json["top1_regret_max"] = value_or_null(s.top1_regret_max);
  json["first_pick_oom"] = s.first_pick_oom;
  json["oom_accuracy"] = value_or_null(s.oom_accuracy);
  json["false_fits"] = s.false_fits;
  json["false_alarms"] = s.false_alarms;
  json["brier"] = value_or_null(s.brier);
  json["memory_median_abs_relative_error"] = value_or_null(s.memory_median_abs_relative_error);
  return json;
}

std::string json_text(const calibrate::Validation& validation) {
  ordered_json json;
  json["schema_version"] = 1;
  json["overall"] = to_json(validation.overall);
  json["sweeps"] = ordered_json::object();
  for (const auto& [name, scores] : validation.sweeps) json["sweeps"][name] = to_json(scores);
  ordered_json reasons = ordered_json::object();
  for (const calibrate::ValidatedRun& run : validation.runs) {
    if (!run.scored) reasons[run.reason] = reasons.value(run.reason, 0) + 1;
  }
  json["unscored_reasons"] = reasons;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string percent(const std::optional<double>& value, int decimals = 1) {
  return value ? base::format_percent_number(*value, decimals) : "-";
}

std::vector<std::string> table_row(const std::string& name, const calibrate::Scores& s) {
  return {name,
          base::format_count(s.num_runs),
          base::format_count(s.num_timed),
          percent(s.mean_abs_relative_error),
          percent(s.median_abs_relative_error),
          s.spearman ? fmt::format("{:.3f}", *s.spearman) : "-",
          percent(s.top1_regret),
          percent(s.oom_accuracy),
          fmt::format("{}/{}", s.false_fits, s.false_alarms),
          percent(s.memory_median_abs_relative_error)};
}

// What was left out of the scores, and why.
std::string unscored_text(const calibrate::Validation& validation) {
  std::map<std::string, int64_t> reasons;
  for (const calibrate::ValidatedRun& run : validation.runs) {
    if (!run.scored) ++reasons[run.reason];
  }
  std::string text;
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("  {:>6}  {}\n", base::format_count(count), reason);
  }
  return text.empty() ? "" : "\nnot scored:\n" + text;
}

std::string table_text(const calibrate::Validation& validation) {
  base::TextTable table({{.title = "sweep", .can_shorten = true},
                         {.title = "runs", .align = base::Align::kRight},
                         {.title = "timed", .align = base::Align::kRight, .drop_priority = 2},
                         {.title = "mean %", .align = base::Align::kRight},
                         {.title = "median %", .align = base::Align::kRight},
                         {.title = "Spearman", .align = base::Align::kRight},
                         {.title = "regret %", .align = base::Align::kRight},
                         {.title = "OOM right %", .align = base::Align::kRight},
                         {.title = "false fit/alarm", .align = base::Align::kRight, .drop_priority = 1},
                         {.title = "memory %", .align = base::Align::kRight}});
  for (const auto& [name, scores] : validation.sweeps) table.add_row(table_row(name, scores));
  table.add_row(table_row("all", validation.overall));
  std::string text = table.render(text_style());
  const calibrate::Scores& s = validation.overall;
  text += fmt::format("\nmean, median: error of predicted step times; regret: the first pick against the best run.\n");
  if (s.error_bar_coverage) {
    text += fmt::format("{} of real times lie within the error bar; median bias {}.\n",
                        base::format_percent(*s.error_bar_coverage), base::format_percent(*s.bias));
  }
  return text + unscored_text(validation);
}

std::string number_or_empty(double value, bool known) { return known ? fmt::format("{}", value) : ""; }

std::string predictions_csv(const std::vector<runs::RunTable>& tables, const calibrate::Validation& validation) {
  std::vector<std::string> header = tables.front().columns;
  const size_t num_columns = header.size();
  header.insert(header.end(), runs::prediction_columns().begin(), runs::prediction_columns().end());
  std::string text = runs::format_csv_row(header);
  for (const calibrate::ValidatedRun& run : validation.runs) {
    const calibrate::Prediction& p = run.prediction;
    const bool known = p.step_seconds > 0;
    std::vector<std::string> fields = run.record->fields;
    fields.resize(num_columns);
    for (const double value : {p.step_seconds, p.first_stage_bytes, p.last_stage_bytes, p.max_bytes}) {
      fields.push_back(number_or_empty(value, known));
    }
    fields.emplace_back(calibrate::name_of(p.verdict));
    fields.push_back(number_or_empty(p.fit_probability, known));
    fields.push_back(number_or_empty(p.margin_bytes, known));
    fields.push_back(run.reason);
    text += runs::format_csv_row(fields);
  }
  return text;
}

std::vector<runs::RunTable> read_tables(const std::vector<std::string>& files, bool same_columns) {
  std::vector<runs::RunTable> tables;
  for (const std::string& file : files) {
    tables.push_back(runs::read_runs(file));
    if (same_columns && tables.back().columns != tables.front().columns) {
      throw base::InputError(file, "its columns differ from those of " + files.front() +
                                       "; --predictions wants tables with the same columns");
    }
  }
  return tables;
}

calibrate::LeaveOut leave_out_of(const std::string& text) {
  if (text == "sweep") return calibrate::LeaveOut::kSweep;
  if (text == "model") return calibrate::LeaveOut::kModel;
  return calibrate::LeaveOut::kNone;
}

void run_validate(const ValidateFlags& flags) {
  const std::vector<runs::RunTable> tables = read_tables(flags.files, !flags.predictions.empty());
  const auto sink = progress_sink();
  std::optional<base::Progress> progress;
  calibrate::ValidateOptions options;
  options.leave_out = leave_out_of(flags.leave_out);
  options.engine = flags.engine;
  options.cluster = flags.cluster;
  options.calibration = flags.calibration;
  options.progress = [&](size_t, size_t total) {
    if (!progress) progress.emplace(sink.get(), "refitting", static_cast<int64_t>(total));
    progress->advance();
  };
  const calibrate::Validation validation = calibrate::validate(tables, options);
  progress.reset();
  if (!flags.predictions.empty()) {
    base::write_file_atomically(flags.predictions, predictions_csv(tables, validation));
  }
  print(flags.json ? json_text(validation) : table_text(validation));
}

}  // namespace

void add_validate(CLI::App& app) {
  auto flags = std::make_shared<ValidateFlags>();
  CLI::App* command = app.add_subcommand("validate", "Predict recorded runs and score the predictions");
  command->add_option("runs", flags->files, "run records (CSV)")->required()->type_name("RUNS.csv");
  command->add_option("--engine", flags->engine, "engine of all runs, instead of the engine column");
  command->add_option("--cluster", flags->cluster,
                      "cluster of the runs whose hardware column names it: what `layline bench` wrote, or any other");
  command->add_option("--calibration", flags->calibration,
                      "calibration file or name, or none (default: the shipped ones)");
  command->add_option("--leave-out", flags->leave_out, "refit without the sweep, or model, that is scored")
      ->check(CLI::IsMember({"none", "sweep", "model"}));
  command->add_option("--predictions", flags->predictions, "write the runs with their predictions to this CSV");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: layline validate data/published/hagemann2024_a100.csv --leave-out sweep");
  command->callback([flags] { run_validate(*flags); });
}

}  // namespace layline::app
