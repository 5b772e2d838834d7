// Every chart of a report is fed with what it draws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "layline/base/error.h"
#include "layline/report/advice.h"
#include "layline/report/paper.h"
#include "layline/report/runs_report.h"
#include "layline/report/writers.h"
#include "layline/study/rule.h"
#include "tests/report/hand_made.h"

namespace layline::report {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

// Fields that a specification reads, and those that its transforms make.
void collect(const json& spec, std::set<std::string>& read, std::set<std::string>& made) {
  if (spec.is_array()) {
    for (const json& part : spec) collect(part, read, made);
    return;
  }
  if (!spec.is_object()) return;
  for (const auto& [key, value] : spec.items()) {
    if (key == "field" && value.is_string()) read.insert(value.get<std::string>());
    if (key == "as" && value.is_string()) made.insert(value.get<std::string>());
    if (key == "groupby") {
      for (const json& field : value) read.insert(field.get<std::string>());
    }
    if ((key == "filter" || key == "calculate" || key == "test") && value.is_string()) {
      const auto text = value.get<std::string>();
      const std::string datum = "datum.";
      for (size_t at = text.find(datum); at != std::string::npos; at = text.find(datum, at)) {
        at += datum.size();
        read.insert(text.substr(at, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at) - at));
      }
    }
    collect(value, read, made);
  }
}

void expect_fed(const Report& report) {
  for (const Section& section : report.sections) {
    for (const Chart& chart : section.charts) {
      SCOPED_TRACE(chart.id);
      std::set<std::string> read, made;
      collect(chart.spec, read, made);
      const Dataset& dataset = report.datasets.at(chart.spec["data"]["name"]);
      made.insert(dataset.fields.begin(), dataset.fields.end());
      for (const std::string& field : read) EXPECT_TRUE(made.count(field)) << "no field " << field;
      EXPECT_FALSE(read.empty());
      EXPECT_FALSE(dataset.rows.empty());
      EXPECT_FALSE(chart.table.empty());
      EXPECT_NE(chart.title, "");
      EXPECT_NE(chart.description, "");
    }
  }
  check_report(report);
}

std::vector<std::string> chart_ids(const Report& report) {
  std::vector<std::string> ids;
  for (const Section& section : report.sections) {
    for (const Chart& chart : section.charts) ids.push_back(chart.id);
  }
  return ids;
}

Report report_of(const std::vector<test::Run>& runs) {
  return runs_report({runs::parse_runs(test::csv_of(runs), "runs.csv")}, {});
}

TEST(RunsReport, ShowsEveryChartForVariedRunsAndFeedsThem) {
  const Report report = report_of(test::varied_runs());
  expect_fed(report);
  EXPECT_THAT(chart_ids(report), testing::UnorderedElementsAre(
                                     "best-layouts", "kernels", "checkpointing", "micro-batch", "tensor-pipeline",
                                     "sequence-parallelism", "sequence-parallelism-pairs", "memory", "pareto",
                                     "memory-verdicts", "pipeline", "predicted-measured", "residuals"));
  EXPECT_EQ(report.filters.size(), 3u);
}

TEST(RunsReport, OfOneRunIsWhole) {
  const Report report = report_of({{.seconds = "26.5"}});
  expect_fed(report);
  EXPECT_THAT(chart_ids(report), Contains("best-layouts"));
  EXPECT_TRUE(report.filters.empty());
}

TEST(RunsReport, OfRunsThatAllRanOutOfMemorySaysSo) {
  const Report report = report_of({{.mb = "8", .status = "oom"}, {.mb = "4", .status = "oom"}});
  expect_fed(report);
  EXPECT_THAT(report.sections[0].text, Contains(HasSubstr("None of them ran")));
  EXPECT_THAT(chart_ids(report), Contains("memory-verdicts"));
}

TEST(RunsReport, OfUnknownEnginesShowsTimesAndSaysThatNothingIsPredicted) {
  const Report report = report_of({{.seconds = "26.5", .engine = ""}, {.mb = "2", .seconds = "28", .engine = ""}});
  expect_fed(report);
  EXPECT_THAT(report.text, Contains(HasSubstr("None of these runs can be predicted")));
  EXPECT_THAT(to_text(report, {}), HasSubstr("26.50"));
}

TEST(RunsReport, OfNoRunsIsAnError) { EXPECT_THROW(report_of({}), base::InputError); }

TEST(PaperReport, IsFedAndNamesWhatIsMissing) {
  std::vector<test::Run> runs = test::varied_runs();
  for (test::Run& run : runs) {
    run.source = "Hagemann et al. 2024 (arXiv 2311.05610)";
    run.notes = run.model == "Other" ? "sweep=other_sequence_parallelism" : "sweep=llama_13B_all_runs";
  }
  const Report report = paper_report({runs::parse_runs(test::csv_of(runs), "runs.csv")}, {});
  expect_fed(report);
  EXPECT_EQ(report.sections[0].tables[0].rows.size(), 10u);
  EXPECT_THAT(report.sections[0].text, Contains(HasSubstr("1 of the paper's 10 sweeps are here")));
  EXPECT_THAT(report.sections[0].text, Contains(HasSubstr("Missing: Llama-13B at 8k tokens, main sweep")));
}

TEST(PaperReport, HoldsTheAdviceAgainstTheRuns) {
  const Report report = paper_report({runs::read_runs(LAYLINE_SOURCE_DIR "/data/published/hagemann2024_a100.csv")}, {});
  const auto section = std::find_if(report.sections.begin(), report.sections.end(),
                                    [](const Section& one) { return one.id == "advice"; });
  ASSERT_NE(section, report.sections.end());
  EXPECT_EQ(section->tables[0].rows.size(), study::rules().size());
  EXPECT_EQ(section->tables[2].rows.size(), study::rules().size());
  EXPECT_EQ(section->tables[2].columns.size(), 1u + 5u);  // the jobs of the main sweeps
  EXPECT_GT(report.datasets.at("pairs").rows.size(), 100u);
}

TEST(StudyReport, IsFedForJobsThatFitAndJobsThatDoNot) {
  const study::StudySpec spec = study::parse_study_spec(
      R"({"models": ["llama-3.1-8b", "llama-3.1-405b"], "clusters": ["h100-80gb"], "gpus": [8, 64],
          "sequence_lengths": [2048], "global_batch_tokens": [1048576], "engines": ["megatron-core"]})",
      "study.json");
  const study::Study study = study::run_study(spec, nullptr);
  const Report report = study_report(study);
  expect_fed(report);
  EXPECT_GT(study.num_nothing_fits, 0);
  EXPECT_EQ(report.datasets.at("jobs").rows.size(), 4u - static_cast<size_t>(study.num_nothing_fits));
  EXPECT_EQ(report.sections[0].charts[0].table.rows.size(), 4u);
  EXPECT_EQ(report.filters.size(), 2u);  // models and GPUs: all else is the same
}

TEST(PaperReport, WithoutTheRunsOfThePaperIsAnError) {
  EXPECT_THROW(paper_report({runs::parse_runs(test::csv_of(test::varied_runs()), "runs.csv")}, {}), base::InputError);
}

}  // namespace
}  // namespace layline::report
