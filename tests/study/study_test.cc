#include "layline/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include "layline/base/error.h"
#include "layline/calibrate/run_job.h"
#include "layline/runs/run_record.h"
#include "layline/spec/job.h"
#include "layline/study/records.h"
#include "layline/study/tables.h"

namespace layline::study {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kSmall = R"({"models": ["llama-1-7b", "llama-13b"], "clusters": ["a100-80gb", "h100-80gb"],
  "engines": ["aleph-scaling"], "gpus": [128, 16], "sequence_lengths": [2048, 8192], "global_batch_tokens": [1048576]})";

StudySpec parsed(const std::string& text) { return parse_study_spec(text, "study.json"); }

std::string with(const std::string& key, const std::string& value) {
  std::string text = kSmall;
  const size_t start = text.find("\"" + key + "\"");
  const size_t end = text.find(']', start) + 1;
  return text.replace(start, end - start, "\"" + key + "\": " + value);
}

std::string error_of(const std::string& text) {
  try {
    run_study(parsed(text), nullptr);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StudySpec, ReadsTheListsAndSortsTheNumbers) {
  const StudySpec spec = parsed(kSmall);
  EXPECT_EQ(spec.name, "study");
  EXPECT_EQ(spec.gpus, (std::vector<int64_t>{16, 128}));
  EXPECT_EQ(points_of(spec).size(), 16u);
}

TEST(StudySpec, SaysWhatIsWrongAndWhere) {
  const std::string base = kSmall;
  EXPECT_THAT(error_of(base.substr(0, base.size() - 1) + R"(, "modles": []})"),
              AllOf(HasSubstr("study.json: $.modles"), HasSubstr("did you mean \"models\"")));
  EXPECT_THAT(error_of("{}"), HasSubstr("is missing"));
  EXPECT_THAT(error_of("[]"), HasSubstr("want an object"));
  EXPECT_THAT(error_of(with("models", "[]")), AllOf(HasSubstr("$.models"), HasSubstr("at least one")));
  EXPECT_THAT(error_of(with("gpus", "[]")), AllOf(HasSubstr("$.gpus"), HasSubstr("at least one")));
  EXPECT_THAT(error_of(with("gpus", "64")), AllOf(HasSubstr("$.gpus"), HasSubstr("want a list")));
  EXPECT_THAT(error_of(with("gpus", "[\"many\"]")), AllOf(HasSubstr("$.gpus"), HasSubstr("\"many\"")));
  EXPECT_THAT(error_of(with("gpus", "[0]")), AllOf(HasSubstr("$.gpus"), HasSubstr("found 0")));
  EXPECT_THAT(error_of(with("gpus", "[1.5]")), AllOf(HasSubstr("$.gpus"), HasSubstr("1.5")));
  EXPECT_THAT(error_of(with("gpus", "[1e300]")), HasSubstr("$.gpus"));
  EXPECT_THAT(error_of(with("gpus", "[16, 16]")), AllOf(HasSubstr("$.gpus"), HasSubstr("twice")));
  EXPECT_THAT(error_of(with("gpus", "[16, 100]")),
              AllOf(HasSubstr("$.gpus"), HasSubstr("100 GPUs"), HasSubstr("nodes of 8")));
  EXPECT_THAT(error_of(with("models", "[\"llama-13b\", \"lama-30b\"]")),
              AllOf(HasSubstr("$.models[1]"), HasSubstr("did you mean \"llama-30b\"")));
  EXPECT_THAT(error_of(with("clusters", "[\"h100-80g\"]")), AllOf(HasSubstr("$.clusters[0]"), HasSubstr("h100-80gb")));
  EXPECT_THAT(error_of(with("engines", "[\"megatron\"]")), HasSubstr("$.engines[0]"));
  EXPECT_THAT(error_of(with("global_batch_tokens", "[1048577]")),
              AllOf(HasSubstr("$.global_batch_tokens"), HasSubstr("1048577"), HasSubstr("2048")));
  EXPECT_THAT(error_of(base.substr(0, base.size() - 1) + R"(, "precision": "bf61"})"),
              AllOf(HasSubstr("$.precision"), HasSubstr("bf16")));
  EXPECT_THAT(error_of(base.substr(0, base.size() - 1) + R"(, "layouts": {"tq": [1]}})"),
              AllOf(HasSubstr("$.layouts"), HasSubstr("tq")));
  EXPECT_THAT(error_of(base.substr(0, base.size() - 1) + R"(, "layouts": {"tp": [3]}})"),
              AllOf(HasSubstr("$.layouts"), HasSubstr("none of 1 layouts is legal")));
}

TEST(StudySpec, RefusesTooManyProductsWithTheirNumber) {
  std::string gpus = "[8", lengths = "[1024";
  for (int i = 2; i <= 100; ++i) gpus += "," + std::to_string(8 * i);
  for (int i = 2; i <= 100; ++i) lengths += "," + std::to_string(1024 * i);
  std::string text = with("gpus", gpus + "]");
  const size_t start = text.find("[2048, 8192]");
  text.replace(start, 12, lengths + "]");
  EXPECT_THAT(error_of(text), AllOf(HasSubstr("40000 products"), HasSubstr("at most 5000")));
  const std::string base = kSmall;
  std::string many = "[1";
  for (int i = 2; i <= 200; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(
      error_of(base.substr(0, base.size() - 1) + ", \"layouts\": {\"tp\": " + many + "], \"mb\": " + many + "]}}"),
      AllOf(HasSubstr("$.layouts"), HasSubstr("40000 products")));
}

std::string all_text(const Study& study) {
  std::string text = records_csv(study);
  for (const Table& table : {rules_table(study), jobs_table(study), boundaries_table(study), turns_table(study)}) {
    for (const auto& row : table.rows) {
      EXPECT_EQ(row.size(), table.columns.size()) << table.title;
      for (const std::string& cell : row) text += cell + "|";
    }
  }
  return text;
}

TEST(Study, IsTheSameOnOneThreadAndOnMany) {
  const std::string many = all_text(run_study(parsed(kSmall), nullptr));
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  EXPECT_EQ(all_text(run_study(parsed(kSmall), nullptr)), many);
}

TEST(Study, SaysWhereNothingFits) {
  const Study study = run_study(parsed(R"({"models": ["llama-65b", "llama-3.2-1b"], "clusters": ["a100-40gb"],
    "engines": ["aleph-scaling"], "gpus": [8], "sequence_lengths": [2048], "global_batch_tokens": [1048576]})"),
                                nullptr);
  EXPECT_EQ(study.num_nothing_fits, 1);
  EXPECT_FALSE(study.jobs[0].advice.best);
  EXPECT_TRUE(study.jobs[1].advice.best);
  EXPECT_THAT(jobs_table(study).rows[0], Contains(HasSubstr("no layout fits")));
  for (const RuleSummary& s : study.rules) {
    EXPECT_EQ(s.num_holds + s.num_no_difference + s.num_breaks + s.num_does_not_apply, 1) << s.rule->id;
  }
}

TEST(Study, FindsEveryPlaceWhereARuleTurns) {
  const Study study = run_study(parsed(R"({"models": ["llama-1-7b"], "clusters": ["a100-80gb"],
    "engines": ["megatron-core"], "gpus": [8, 32, 128, 512, 2048], "sequence_lengths": [4096],
    "global_batch_tokens": [8388608]})"),
                                nullptr);
  ASSERT_EQ(study.jobs.size(), 5u);
  size_t num_turns = 0;
  for (size_t rule = 0; rule < rules().size(); ++rule) {
    std::optional<bool> before;
    for (const StudyJob& job : study.jobs) {
      const auto now = is_true(job.advice.outcomes[rule]);
      if (before && now && *before != *now) ++num_turns;
      if (now) before = now;
    }
  }
  EXPECT_GT(num_turns, 0u);
  EXPECT_EQ(study.boundaries.size(), num_turns);
  for (const Boundary& b : study.boundaries) {
    const auto rule = static_cast<size_t>(b.rule - rules().data());
    EXPECT_EQ(b.along, "gpus");
    EXPECT_LT(b.before, b.after);
    EXPECT_EQ(is_true(study.jobs[b.before].advice.outcomes[rule]), b.stops);
    EXPECT_EQ(is_true(study.jobs[b.after].advice.outcomes[rule]), !b.stops);
  }
}

TEST(Study, WritesRecordsThatSayTheyArePredicted) {
  const Study study = run_study(parsed(kSmall), nullptr);
  size_t num_layouts = 0;
  for (const StudyJob& job : study.jobs) num_layouts += job.layouts.size();
  const runs::RunTable table = runs::parse_runs(records_csv(study), "study.csv");
  ASSERT_EQ(table.records.size(), num_layouts);
  size_t i = 0;
  for (const StudyJob& job : study.jobs) {
    for (const search::PricedLayout& priced : job.layouts) {
      const runs::RunRecord& record = table.records[i++];
      EXPECT_THAT(record.source, HasSubstr("predicted"));
      EXPECT_THAT(record.notes, HasSubstr("predicted"));
      EXPECT_FALSE(record.status);
      EXPECT_FALSE(record.step_time_s);
      EXPECT_EQ(record.scored, false);
      const calibrate::RunJobOrReason run = calibrate::job_of(record, "");
      ASSERT_TRUE(run.run) << run.reason;
      EXPECT_EQ(run.run->layout, priced.layout);
      EXPECT_EQ(spec::measured_job_key(run.run->job), spec::measured_job_key(*job.point.job));
    }
  }
}

TEST(Study, PricesTheLayoutsThatAreAskedFor) {
  std::string text = kSmall;
  text.pop_back();
  const Study study = run_study(parsed(text + R"(, "layouts": {"tp": [1, 2], "pp": [1, 2], "mb": [1, 2]}})"), nullptr);
  for (const StudyJob& job : study.jobs) {
    const spec::Job& own = *job.point.job;
    EXPECT_EQ(job.layouts.size(), own.num_gpus * 2 > own.global_batch ? 7u : 8u);  // tp1 pp1 mb2 is too many sequences
    for (const search::PricedLayout& priced : job.layouts) {
      EXPECT_LE(priced.layout.tp * priced.layout.pp, 4);
      EXPECT_EQ(priced.layout.checkpointing, layout::Checkpointing::kNone);
    }
    if (!job.advice.best) continue;
    const Outcome& outcome = job.advice.outcomes[0];  // micro-batch-1, among these
    if (outcome.gain) {
      EXPECT_LE(outcome.other->layout.mb, 2);
    }
  }
  const Study listed =
      run_study(parsed(text + R"(, "layouts": ["tp2 pp1 mb1", "tp1 pp2 mb1", "tp7 pp1 mb1"]})"), nullptr);
  for (const StudyJob& job : listed.jobs) EXPECT_EQ(job.layouts.size(), 2u);
}

}  // namespace
}  // namespace layline::study
