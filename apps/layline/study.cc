#include "layline/study/study.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/layline/advise_text.h"
#include "apps/layline/command.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/report_files.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/text_table.h"
#include "layline/base/text_wrap.h"
#include "layline/base/units.h"
#include "layline/report/advice.h"
#include "layline/study/records.h"
#include "layline/study/tables.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;
using study::Study;

constexpr size_t kRowsInText = 60;

struct StudyFlags {
  std::string spec, output, report;
  bool json = false;
};

bool is_number_column(const std::string& title) {
  for (const char* name : {"holds", "same", "breaks", "n/a", "median", "worst", "step s", "MFU %", "gain", "gpus",
                           "sequence_lengths", "global_batch_tokens"}) {
    if (title == name) return true;
  }
  return false;
}

// `shortened`: the column that gives way on a narrow terminal; at most kRowsInText rows.
std::string text_of(const study::Table& table, const std::string& shortened) {
  std::vector<base::TextColumn> columns;
  for (const std::string& title : table.columns) {
    columns.push_back({.title = title,
                       .align = is_number_column(title) ? base::Align::kRight : base::Align::kLeft,
                       .can_shorten = title == shortened});
  }
  base::TextTable text(columns);
  for (size_t i = 0; i < std::min(kRowsInText, table.rows.size()); ++i) text.add_row(table.rows[i]);
  if (table.rows.size() > kRowsInText) {
    text.add_line(fmt::format("and {} more (--json has all)", table.rows.size() - kRowsInText));
  }
  return text.render(text_style());
}

// The rows as sentences: their lists of values are too long for columns.
std::string turns_text(const study::Table& turns) {
  if (turns.rows.empty()) return "\nNo rule turns along any list.\n";
  std::string text = "\nWhere rules turn, and on how many lines of jobs (--json has each):\n";
  for (const std::vector<std::string>& row : turns.rows) {
    std::string sentence = fmt::format("{} along {}:", row[0], row[1]);
    if (!row[2].empty()) sentence += " stops being true from " + row[2];
    if (!row[3].empty()) sentence += fmt::format("{} becomes true from {}", row[2].empty() ? "" : ";", row[3]);
    text += base::wrap(sentence, text_style(), 2);
  }
  return text;
}

std::string study_text(const Study& study, const std::string& output) {
  std::string text = fmt::format("{}: {} jobs, {} without a layout that fits\n\n", study.spec.name, study.jobs.size(),
                                 study.num_nothing_fits);
  text += text_of(study::jobs_table(study), "best layout");
  text +=
      base::wrap("rules, in the order of the table below: + holds, = makes no difference, - breaks, . does not apply",
                 text_style(), 0);
  text += "\n" + text_of(study::rules_table(study), "where");
  text += base::wrap(
      "same: no difference; n/a: does not apply; median, worst: how much longer a step takes without it; of a rule "
      "that "
      "names a layout, how much slower that is than the best",
      text_style(), 0);
  text += turns_text(study::turns_table(study));
  if (!output.empty()) text += fmt::format("\npredicted run records: {}\n", output);
  return text;
}

ordered_json value_or_null(const std::optional<double>& value) { return value ? ordered_json(*value) : nullptr; }

ordered_json job_json(const study::StudyJob& job) {
  const study::Advice& advice = job.advice;
  ordered_json json = {{"job", json_of(*advice.job)},
                       {"engine", advice.job->engine.name},
                       {"calibration", advice.job->calibration.name},
                       {"num_legal", advice.num_legal},
                       {"num_fit", advice.num_fit}};
  json["best"] = advice.best ? json_of(*advice.job, *advice.best) : ordered_json();
  if (!advice.best) json["why_nothing_fits"] = advice.why_nothing_fits;
  json["rules"] = ordered_json::array();
  for (const study::Outcome& outcome : advice.outcomes) json["rules"].push_back(json_of(*advice.job, outcome));
  return json;
}

ordered_json study_json(const Study& study) {
  ordered_json json;
  json["schema_version"] = 1;
  json["study"] = study.spec.name;
  json["num_jobs"] = study.jobs.size();
  json["num_nothing_fits"] = study.num_nothing_fits;
  json["rules"] = ordered_json::array();
  for (const study::RuleSummary& s : study.rules) {
    json["rules"].push_back({{"rule", s.rule->id},
                             {"statement", s.rule->statement},
                             {"source", s.rule->source},
                             {"num_holds", s.num_holds},
                             {"num_no_difference", s.num_no_difference},
                             {"num_breaks", s.num_breaks},
                             {"num_does_not_apply", s.num_does_not_apply},
                             {"median_gain", value_or_null(s.median_gain)},
                             {"worst_gain", value_or_null(s.worst_gain)},
                             {"best_gain", value_or_null(s.best_gain)}});
  }
  json["boundaries"] = ordered_json::array();
  for (const study::Boundary& b : study.boundaries) {
    json["boundaries"].push_back({{"rule", b.rule->id},
                                  {"along", b.along},
                                  {"before", b.before},
                                  {"after", b.after},
                                  {"stops", b.stops},
                                  {"before_value", study::value_text(study.jobs[b.before], b.along)},
                                  {"after_value", study::value_text(study.jobs[b.after], b.along)},
                                  {"at", study::other_values_text(study, study.jobs[b.after], b.along)}});
  }
  json["jobs"] = ordered_json::array();
  for (const study::StudyJob& job : study.jobs) json["jobs"].push_back(job_json(job));
  return json;
}

void run_study_command(const StudyFlags& flags) {
  const std::string format = report_format(flags.report);  // before the long part
  if (!flags.report.empty() && flags.report == flags.output) {
    throw base::InputError("--report", fmt::format("\"{}\" is where --output goes too", flags.report));
  }
  const study::StudySpec spec = study::read_study_spec(flags.spec);
  const auto sink = progress_sink();
  const Study study = study::run_study(spec, sink.get());
  if (!flags.output.empty()) base::write_file_atomically(flags.output, study::records_csv(study));
  if (!flags.report.empty()) {
    const report::Report report = report::study_report(study);
    base::write_file_atomically(flags.report, written_report(report, format));
  }
  print(flags.json ? json_text(study_json(study)) : study_text(study, flags.output));
  if (study.num_nothing_fits == static_cast<int64_t>(study.jobs.size())) throw Exit{kNothingFits};
}

}  // namespace

void add_study(CLI::App& app) {
  auto flags = std::make_shared<StudyFlags>();
  CLI::App* command = app.add_subcommand("study", "Find where rules of thumb stop being true, by price");
  command->add_option("study", flags->spec, "STUDY.json: lists of models, clusters, GPUs, lengths, batches, engines")
      ->required()
      ->type_name("STUDY.json");
  command->add_option("--output", flags->output, "write the priced layouts as predicted run records (CSV)")
      ->type_name("RUNS.csv");
  command
      ->add_option("--report", flags->report,
                   "write charts and tables; its ending says the format (.html, .md, .json, .txt)")
      ->type_name("R.html");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: layline study examples/study-h100.json --output predicted.csv --report study.html");
  command->callback([flags] { run_study_command(*flags); });
}

}  // namespace layline::app
