#include "layline/report/paper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/report/advice.h"
#include "layline/report/appendix.h"
#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/common_text.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/systems.h"

namespace layline::report {
namespace {

bool is_about_sequence_parallelism(const ReportRun& run) {
  return run.sweep.find("sequence_parallelism") != std::string::npos;
}

std::string name_of(const PaperSweep& sweep) {
  return fmt::format("{} at {} tokens, {}", sweep.model, length_text(sweep.sequence_length),
                     sweep.is_about_sequence_parallelism ? "sequence parallelism" : "main sweep");
}

RunList runs_of(const PaperSweep& sweep, const RunList& runs) {
  return those(runs, [&](const ReportRun& run) {
    return run.model == sweep.model && run.record->seq_len == sweep.sequence_length &&
           is_about_sequence_parallelism(run) == sweep.is_about_sequence_parallelism;
  });
}

std::string options_text(const RunList& runs, const std::function<std::string(const ReportRun&)>& option) {
  std::vector<std::string> values;
  for (const auto& [value, members] : by(runs, option)) values.push_back(value);
  std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
    return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
  });
  return fmt::format("{}", fmt::join(values, ", "));
}

Table sweeps_table(const RunList& runs) {
  Table table;
  table.title = "The paper's sweeps";
  table.columns = {text_column("sweep"),
                   number_column("GPUs"),
                   number_column("runs"),
                   number_column("ran"),
                   number_column("out of memory"),
                   number_column("no kernel or failed"),
                   text_column("micro-batch"),
                   text_column("tp"),
                   text_column("pp"),
                   text_column("here")};
  for (const PaperSweep& sweep : paper_sweeps()) {
    const RunList own = runs_of(sweep, runs);
    if (own.empty()) {
      table.rows.push_back({name_of(sweep), kNone, kNone, kNone, kNone, kNone, kNone, kNone, kNone, "missing"});
      continue;
    }
    const auto ran = std::count_if(own.begin(), own.end(), [](const ReportRun* run) { return run->is_ok; });
    const auto out = std::count_if(own.begin(), own.end(), [](const ReportRun* run) { return run->is_oom; });
    const auto all = static_cast<int64_t>(own.size());
    table.rows.push_back({name_of(sweep), count_cell(own.front()->num_gpus), count_cell(all), count_cell(ran),
                          count_cell(out), count_cell(all - ran - out),
                          options_text(own, [](const ReportRun& r) { return fmt::format("{}", r.layout.mb); }),
                          options_text(own, [](const ReportRun& r) { return fmt::format("{}", r.layout.tp); }),
                          options_text(own, [](const ReportRun& r) { return fmt::format("{}", r.layout.pp); }), "yes"});
  }
  return table;
}

Section sweeps_section(const RunList& runs) {
  Section section{.id = "sweeps", .title = "The sweeps"};
  std::vector<std::string> missing;
  for (const PaperSweep& sweep : paper_sweeps()) {
    if (runs_of(sweep, runs).empty()) missing.push_back(name_of(sweep));
  }
  const size_t num_all = paper_sweeps().size();
  section.text.push_back(fmt::format(
      "Every run trains with ZeRO-1 in bf16 on A100 80 GB GPUs: micro-batch sizes, tensor and pipeline parallelism, "
      "activation checkpointing off or in every layer, five kernels. {} of the paper's {} sweeps are here.",
      num_all - missing.size(), num_all));
  if (!missing.empty()) {
    section.text.push_back(
        fmt::format("Missing: {}. They are shown once their rows are in the folder.", fmt::join(missing, "; ")));
  }
  section.tables.push_back(sweeps_table(runs));
  return section;
}

struct Tables {
  std::vector<runs::RunTable> paper, others;
};

Tables split(const std::vector<runs::RunTable>& tables) {
  Tables parts;
  for (const runs::RunTable& table : tables) {
    const bool is_paper = std::any_of(table.records.begin(), table.records.end(), is_of_paper);
    (is_paper ? parts.paper : parts.others).push_back(table);
  }
  return parts;
}

Section end_to_end(const RunList& runs) {
  Section section = best_layouts(runs);
  section.id = "end-to-end";
  section.title = "End to end: the best layouts";
  return section;
}

}  // namespace

const std::vector<PaperSweep>& paper_sweeps() {
  static const std::vector<PaperSweep> sweeps = [] {
    constexpr int64_t k2k = 2048, k8k = 8192;
    const std::vector<std::pair<const char*, int64_t>> jobs = {
        {"Llama-13B", k2k}, {"Llama-13B", k8k}, {"Llama-30B", k2k}, {"Llama-30B", k8k}, {"Llama-65B", k2k}};
    std::vector<PaperSweep> all;
    for (const bool is_about_sp : {false, true}) {
      for (const auto& [model, length] : jobs) all.push_back({model, length, is_about_sp});
    }
    return all;
  }();
  return sweeps;
}

bool is_of_paper(const runs::RunRecord& record) { return record.source.find("2311.05610") != std::string::npos; }

Report paper_report(const std::vector<runs::RunTable>& tables, const PaperOptions& options) {
  const Tables parts = split(tables);
  if (parts.paper.empty()) {
    throw base::InputError("report paper", "no run of the tables has arXiv 2311.05610 as its source");
  }
  const calibrate::Validation paper =
      calibrate::validate(parts.paper, {.leave_out = calibrate::LeaveOut::kSweep, .progress = options.progress});
  const calibrate::Validation others = calibrate::validate(parts.others, {});
  const std::vector<ReportRun> paper_runs = report_runs(paper), other_runs = report_runs(others);
  const RunList all = all_of(paper_runs);
  const RunList main = those(all, [](const ReportRun& run) { return !is_about_sequence_parallelism(run); });
  RunList everyone = all;
  for (const ReportRun& run : other_runs) everyone.push_back(&run);

  Report report;
  report.title = "Efficient parallelization layouts: the paper's runs and what the model predicts";
  report.text = {
      "The figures and tables of Hagemann et al., Efficient Parallelization Layouts for Large-Scale Distributed Model "
      "Training (arXiv 2311.05610), rebuilt from its published runs. Each run is laid beside a prediction that was "
      "made "
      "without it: the model is fitted to the other sweeps of the paper and predicts the one that is shown. Memory by "
      "stage and pipelines, which nobody published, are predicted with the shipped calibration.",
      mfu_text()};
  if (std::string text = mfu_conventions_text(paper_runs); !text.empty()) report.text.push_back(std::move(text));
  report.filters = run_filters(all);
  report.datasets[kRunsDataset] = runs_dataset(all);
  report.sections.push_back(sweeps_section(all));
  report.sections.push_back(end_to_end(all));
  report.sections.push_back(systems(everyone, report.datasets));
  report.sections.push_back(kernels(main));
  report.sections.push_back(checkpointing(main));
  report.sections.push_back(micro_batches(main));
  report.sections.push_back(tensor_against_pipeline(main));
  report.sections.push_back(sequence_parallelism(all, report.datasets));
  report.sections.push_back(advice(study::evidence_from_runs(tables, {}), main, report.datasets));
  report.sections.push_back(accuracy(all, paper));
  report.sections.push_back(out_of_memory(all));
  report.sections.push_back(time_against_memory(main));
  report.sections.push_back(stage_memory(main, "", report.datasets));
  report.sections.push_back(pipeline_timelines(main, "", report.datasets));
  report.sections.push_back(appendix(all));
  return report;
}

}  // namespace layline::report
