#include "layline/calibrate/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "layline/base/error.h"
#include "tests/calibrate/synthetic.h"

namespace layline::calibrate {
namespace {

using runs::RunRecord;
using runs::RunStatus;
using runs::RunTable;
using testing::HasSubstr;

// Two sweeps of an engine without a shipped calibration on its GPU, timed with coefficients that are not the defaults.
RunTable synthetic_table() {
  spec::Coefficients truth;
  truth.gemm_efficiency = 0.65;
  truth.tp_intra_efficiency = 0.4;
  RunTable table;
  table.file = "synthetic.csv";
  for (const int64_t gpus : {32, 64}) {
    const auto job = test::shared_job(test::job_text(gpus));
    for (const Observation& run : test::timed_runs(job, truth)) {
      RunRecord record = test::record_of(*job, run.layout, gpus == 32 ? "small" : "large");
      record.step_time_s = run.seconds;
      table.records.push_back(std::move(record));
    }
  }
  return table;
}

std::string sweep_of(const RunRecord& record) { return runs::sweep_name(record); }

RunTable published(const std::string& name, size_t every = 1) {
  RunTable table = runs::read_runs(LAYLINE_SOURCE_DIR "/data/published/" + name + ".csv");
  std::vector<RunRecord> kept;
  for (size_t i = 0; i < table.records.size(); i += every) kept.push_back(table.records[i]);
  table.records = std::move(kept);
  return table;
}

// Everything that is predicted, the bar apart: that is about how good predictions are, not one of them.
void expect_same_prediction(const Prediction& a, const Prediction& b) {
  EXPECT_EQ(a.step_seconds, b.step_seconds);
  EXPECT_EQ(a.max_bytes, b.max_bytes);
  EXPECT_EQ(a.verdict, b.verdict);
  EXPECT_EQ(a.fit_probability, b.fit_probability);
}

TEST(Validate, TakesTheClusterOfTheRunsThatNameIt) {
  const std::vector<RunTable> tables = {synthetic_table()};
  const std::string hardware = tables[0].records[0].hardware;
  const Validation plain = validate(tables, {.calibration = "none"});
  const Validation same = validate(tables, {.cluster = hardware, .calibration = "none"});
  EXPECT_EQ(plain.runs[0].prediction.step_seconds, same.runs[0].prediction.step_seconds);
  try {
    validate(tables, {.cluster = "h100-80gb"});
    FAIL() << "no run was on it";
  } catch (const base::InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("their hardware is " + hardware));
  }
}

TEST(LeaveOneSweepOut, DoesNotLookAtTheSweepItScores) {
  const RunTable before = synthetic_table();
  RunTable after = before;
  for (RunRecord& record : after.records) {
    if (sweep_of(record) == "large") *record.step_time_s *= 2;
  }
  const ValidateOptions options{.leave_out = LeaveOut::kSweep};
  const std::vector<RunTable> tables_before = {before}, tables_after = {after};
  const Validation a = validate(tables_before, options), b = validate(tables_after, options);
  size_t num_moved = 0;
  for (size_t i = 0; i < a.runs.size(); ++i) {
    if (a.runs[i].sweep == "large") {
      expect_same_prediction(a.runs[i].prediction, b.runs[i].prediction);
    } else {
      num_moved += std::abs(b.runs[i].prediction.step_seconds / a.runs[i].prediction.step_seconds - 1) > 0.1;
    }
  }
  EXPECT_GT(num_moved, 5u);
  EXPECT_LT(*a.overall.mean_abs_relative_error, 0.03);
}

TEST(LeaveOneSweepOut, DoesNotLookAtItsVerdictsEither) {
  RunTable before = synthetic_table();
  for (RunRecord& record : before.records) record.peak_memory_GiB.reset();
  RunTable after = before;
  for (RunRecord& record : after.records) {
    if (sweep_of(record) == "large") record.status = RunStatus::kOom;
  }
  const ValidateOptions options{.leave_out = LeaveOut::kSweep};
  const std::vector<RunTable> tables_before = {before}, tables_after = {after};
  const Validation a = validate(tables_before, options), b = validate(tables_after, options);
  for (size_t i = 0; i < a.runs.size(); ++i) {
    if (a.runs[i].sweep == "large") expect_same_prediction(a.runs[i].prediction, b.runs[i].prediction);
  }
}

// A shipped calibration was fitted to these runs: that must be noticed when their sweeps and models are called
// anything.
TEST(LeaveOneSweepOut, IsNotFooledByOtherNames) {
  RunTable named = published("hagemann2024_a100");
  std::erase_if(named.records, [](const RunRecord& record) {
    return sweep_of(record) != "llama_13B_bfloat16_32_GPUs_sequence_parallelism" &&
           sweep_of(record) != "llama_30B_bfloat16_64_GPUs_sequence_parallelism";
  });
  RunTable renamed = named;
  for (RunRecord& record : renamed.records) {
    record.model = "model " + record.model;
    record.notes = "";
  }
  for (const LeaveOut leave_out : {LeaveOut::kSweep, LeaveOut::kModel}) {
    const std::vector<RunTable> a_tables = {named}, b_tables = {renamed};
    const Validation a = validate(a_tables, {.leave_out = leave_out});
    const Validation b = validate(b_tables, {.leave_out = leave_out});
    for (size_t i = 0; i < a.runs.size(); ++i) expect_same_prediction(a.runs[i].prediction, b.runs[i].prediction);
  }
}

TEST(LeaveOneModelOut, NeedsAnotherModelToLearnFrom) {
  // Both sweeps are of one model: nothing is left, so the analytic defaults predict.
  const std::vector<RunTable> tables = {synthetic_table()};
  const Validation left_out = validate(tables, {.leave_out = LeaveOut::kModel});
  const Validation defaults = validate(tables, {.calibration = "none"});
  for (size_t i = 0; i < left_out.runs.size(); ++i) {
    expect_same_prediction(left_out.runs[i].prediction, defaults.runs[i].prediction);
    EXPECT_DOUBLE_EQ(defaults.runs[i].prediction.relative_error_bar, spec::Calibration{}.relative_error_bar);
  }
}

TEST(Validate, ReportsEveryFitAsProgress) {
  const std::vector<RunTable> tables = {synthetic_table()};
  std::vector<std::pair<size_t, size_t>> seen;
  validate(tables, {.leave_out = LeaveOut::kSweep,
                    .progress = [&](size_t done, size_t total) { seen.emplace_back(done, total); }});
  EXPECT_THAT(seen, testing::ElementsAre(std::pair(1, 2), std::pair(2, 2)));
}

TEST(Validate, EveryRunIsScoredOrHasAReason) {
  for (const char* name : {"hagemann2024_a100", "bigscience_a100", "megatron_papers", "nemo_h100", "megatron_ci",
                           "llm_foundry_a100", "nanotron_h100", "megatron_vtrain_a100"}) {
    const std::vector<RunTable> tables = {published(name)};
    const Validation validation = validate(tables, {});
    ASSERT_EQ(validation.runs.size(), tables[0].records.size());
    int64_t num_scored = 0;
    for (const ValidatedRun& run : validation.runs) {
      EXPECT_TRUE(run.scored || !run.reason.empty()) << name << " line " << run.record->line;
      if (run.prediction.verdict != Verdict::kIllegal) {
        EXPECT_TRUE(std::isfinite(run.prediction.step_seconds) && run.prediction.step_seconds > 0) << name;
        EXPECT_TRUE(run.prediction.max_bytes > 1e8 && run.prediction.max_bytes < 1e13) << name;
        EXPECT_TRUE(run.prediction.fit_probability >= 0 && run.prediction.fit_probability <= 1) << name;
        EXPECT_EQ(run.prediction.margin_bytes >= 0, run.prediction.verdict == Verdict::kFits) << name;
      }
      num_scored += run.scored;
      EXPECT_FALSE(run.scored && run.prediction.verdict == Verdict::kIllegal) << name << ": " << run.reason;
    }
    EXPECT_EQ(validation.overall.num_runs, static_cast<int64_t>(validation.runs.size()));
    EXPECT_EQ(validation.overall.num_unscored, validation.overall.num_runs - num_scored);
    int64_t in_sweeps = 0;
    for (const auto& [sweep, scores] : validation.sweeps) in_sweeps += scores.num_runs;
    EXPECT_EQ(in_sweeps, validation.overall.num_runs) << name;
  }
}

TEST(Validate, UnscoredRunsSayWhy) {
  RunTable table = synthetic_table();
  table.records.resize(6);
  table.records[0].scored = false;
  table.records[1].status = RunStatus::kFail;
  table.records[2].status = RunStatus::kTimeout;
  table.records[3].vocab.reset();
  table.records[4].status.reset();
  const std::vector<RunTable> tables = {table};
  const Validation validation = validate(tables, {});
  const char* reasons[] = {
      "scored 0", "status fail is not scored", "status timeout is not scored", "no vocab", "no status", ""};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_THAT(validation.runs[i].reason, HasSubstr(reasons[i]));
    EXPECT_EQ(validation.runs[i].scored, i == 5) << i;
    EXPECT_EQ(validation.runs[i].prediction.verdict == Verdict::kIllegal, i == 3) << "predicted where possible";
  }
  EXPECT_EQ(validation.overall.num_unscored, 5);
  EXPECT_EQ(validation.overall.num_timed, 1);
}

TEST(Validate, CallingARunIllegalThatRanIsAWrongVerdict) {
  RunTable table = synthetic_table();
  table.records.resize(4);
  table.records[0].micro_batch_size = 3;
  const std::vector<RunTable> tables = {table};
  const Validation validation = validate(tables, {});
  EXPECT_EQ(validation.runs[0].prediction.verdict, Verdict::kIllegal);
  EXPECT_FALSE(validation.runs[0].reason.empty());
  EXPECT_EQ(validation.overall.num_unscored, 0);
  EXPECT_EQ(validation.overall.num_timed, 3);
  EXPECT_GE(validation.overall.false_alarms, 1);
  EXPECT_LE(*validation.overall.oom_accuracy, 0.75);
  EXPECT_TRUE(std::isfinite(*validation.overall.mean_abs_relative_error));
}

TEST(Validate, OfNothingIsEmpty) {
  EXPECT_TRUE(validate({}, {}).runs.empty());
  EXPECT_EQ(validate({RunTable{}}, {.leave_out = LeaveOut::kSweep}).overall.num_runs, 0);
}

TEST(Validate, AnUnknownCalibrationIsAnInputError) {
  const std::vector<RunTable> tables = {synthetic_table()};
  EXPECT_THROW(validate(tables, {.calibration = "nobodys"}), base::InputError);
}

TEST(ThePapersRuns, AreMetByTheShippedCalibration) {
  const std::vector<RunTable> tables = {published("hagemann2024_a100")};
  const Scores scores = validate(tables, {}).overall;
  EXPECT_EQ(scores.num_timed, 346);
  EXPECT_EQ(scores.num_unscored, 20);
  EXPECT_LT(*scores.mean_abs_relative_error, 0.05);
  EXPECT_LT(*scores.median_abs_relative_error, 0.03);
  EXPECT_LT(std::abs(*scores.bias), 0.02);
  EXPECT_GT(*scores.oom_accuracy, 0.96);
  EXPECT_GT(*scores.spearman, 0.9);
  EXPECT_LT(*scores.top1_regret, 0.05);
  EXPECT_EQ(scores.first_pick_oom, 0);
  EXPECT_GT(*scores.error_bar_coverage, 0.8);
}

TEST(ThePapersRuns, AreNotFarOffUncalibrated) {
  const std::vector<RunTable> tables = {published("hagemann2024_a100")};
  const Scores scores = validate(tables, {.calibration = "none"}).overall;
  EXPECT_LT(*scores.mean_abs_relative_error, 0.2);
  EXPECT_GT(*scores.oom_accuracy, 0.95);
}

// Every sixth run of the larger models, to be quick; over all of them errors are smaller.
TEST(ThePapersRuns, AreMetWithTheirSweepLeftOut) {
  RunTable table = published("hagemann2024_a100", 6);
  std::erase_if(table.records, [](const RunRecord& record) { return record.model == "Llama-13B"; });
  const std::vector<RunTable> tables = {table};
  const Scores scores = validate(tables, {.leave_out = LeaveOut::kSweep}).overall;
  EXPECT_GT(scores.num_timed, 30);
  EXPECT_LT(*scores.mean_abs_relative_error, 0.06);
  EXPECT_GT(*scores.oom_accuracy, 0.95);
  EXPECT_EQ(scores.first_pick_oom, 0);
}

TEST(Calibrate, LearnsAndSaysHowWell) {
  const std::vector<RunTable> tables = {synthetic_table()};
  const spec::Calibration calibration = calibrate(tables, {.engine = "layline"});
  EXPECT_EQ(calibration.engine, "layline");
  EXPECT_EQ(calibration.gpu, "a100-80gb");
  EXPECT_EQ(calibration.name, "layline-a100");
  EXPECT_EQ(calibration.num_timed_runs, static_cast<int64_t>(tables[0].records.size()));
  EXPECT_LT(calibration.mean_abs_relative_error, 0.01);
  ASSERT_EQ(calibration.left_out.size(), 2u);
  EXPECT_EQ(calibration.left_out[0].name, "large");
  EXPECT_GE(calibration.left_out[0].mean_abs_relative_error, calibration.mean_abs_relative_error);
  EXPECT_LT(calibration.relative_error_bar, 0.1);
  EXPECT_NO_THROW(calibration.coefficients());
}

TEST(Calibrate, RunsWithoutAnEngineBelongToTheOneThatIsAskedFor) {
  RunTable table = synthetic_table();
  table.records.resize(10);
  for (RunRecord& record : table.records) record.engine = "";
  const std::vector<RunTable> tables = {table};
  EXPECT_EQ(calibrate(tables, {.engine = "LAYLINE", .leave_out = LeaveOut::kModel}).num_timed_runs, 10);
}

TEST(Calibrate, NamesASweepThatItLeavesOutEvenWhenItShipsACalibrationThatNeverSawIt) {
  RunTable table = synthetic_table();
  for (RunRecord& record : table.records) record.engine = "aleph-scaling";
  std::erase_if(table.records,
                [](const RunRecord& record) { return *record.micro_batch_size > 1 || record.recompute == "full"; });
  const std::vector<RunTable> tables = {table};
  EXPECT_EQ(calibrate(tables, {.engine = "aleph-scaling"}).left_out.size(), 2u);
}

TEST(Calibrate, NothingToLearnFromIsAnInputError) {
  const std::vector<RunTable> tables = {synthetic_table()};
  EXPECT_THROW(calibrate(tables, {.engine = "nanotron"}), base::InputError);
  EXPECT_THROW(calibrate(tables, {.engine = "layline", .gpu = "h100-80gb"}), base::InputError);
  EXPECT_THROW(calibrate(tables, {.engine = "laylin"}), base::InputError);
}

}  // namespace
}  // namespace layline::calibrate
