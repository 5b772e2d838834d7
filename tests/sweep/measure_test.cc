#include "layline/sweep/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "layline/trainer/metrics/metrics_writer.h"

namespace layline::sweep {
namespace {

using runs::RunStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Ranks that write these metrics and end like this.
class WrittenRun : public Launcher {
 public:
  LaunchResult launch(const LaunchRequest& request, const std::function<bool()>& should_stop) override {
    const trainer::config::RunConfig run = trainer::config::read_run_config(request.run_file);
    trainer::metrics::MetricsWriter writer(run.metrics);
    launched = request;
    for (size_t i = 0; i < seconds.size(); ++i) {
      trainer::metrics::StepRecord step;
      step.step = static_cast<int64_t>(i) + 1;
      step.step_seconds = seconds[i];
      step.mfu = 0.1 * seconds[i];
      step.peak_memory_bytes = 1000 + static_cast<int64_t>(i);
      step.peak_memory_bytes_by_stage = {step.peak_memory_bytes, 500};
      step.seconds_by_stage = {{{"attention", seconds[i] / 2}}, {{"pipeline", seconds[i]}}};
      writer.write(step);
      if (should_stop()) return {LaunchEnd::kStopped, 0, "", 1};
    }
    return result;
  }

  std::vector<double> seconds = {9, 2, 1, 3};
  LaunchResult result;
  LaunchRequest launched;
};

class Measure : public testing::Test {
 protected:
  Measure() { std::filesystem::create_directories(folder_); }
  ~Measure() override { std::filesystem::remove_all(folder_); }

  Measurement measured(const MeasureOptions& options = {}) {
    trainer::config::RunConfig run = trainer::config::parse_run_config(
        R"({"model": "llama-tiny", "layout": "dp1 tp1 pp2 mb1", "sequence_length": 64, "global_batch": 4, "steps": 4,
            "data": {"train": "corpus"}, "memory_limit_bytes": 1000000})",
        "run.json");
    MeasureOptions with_folder = options;
    with_folder.scratch_folder = folder_.string();
    return measure(std::move(run), 2, launcher_, with_folder);
  }

  WrittenRun launcher_;

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + std::to_string(getpid()));
};

TEST_F(Measure, TakesMediansOfAllStepsButTheFirst) {
  const Measurement found = measured();
  EXPECT_EQ(found.status, RunStatus::kOk);
  EXPECT_EQ(found.num_steps, 4);
  EXPECT_DOUBLE_EQ(*found.step_seconds, 2);
  EXPECT_DOUBLE_EQ(*found.fastest_step_seconds, 1);
  EXPECT_DOUBLE_EQ(*found.spread, 0.5);
  EXPECT_DOUBLE_EQ(*found.tokens_per_second, 4 * 64 / 2.0);
  EXPECT_DOUBLE_EQ(*found.mfu, 0.2);
  EXPECT_EQ(found.peak_memory_bytes, 1003);
  EXPECT_THAT(found.peak_memory_bytes_by_stage, ElementsAre(1003, 500));
  EXPECT_THAT(found.seconds_by_stage, ElementsAre(ElementsAre(Pair("attention", 1)), ElementsAre(Pair("pipeline", 2))));
}

TEST_F(Measure, PutsANetBehindTheRunsOwnLimit) {
  measured();
  EXPECT_EQ(launcher_.launched.num_ranks, 2);
  EXPECT_GT(launcher_.launched.memory_limit_bytes.value(), 1000000);
}

TEST_F(Measure, NamesMemoryBeforeWhatCameOfItsLack) {
  launcher_.seconds = {1};
  launcher_.result = {LaunchEnd::kExited, 1, "error: rank 0: connection closed\nerror: rank 1: out of memory: 3 MiB\n",
                      1};
  const Measurement found = measured();
  EXPECT_EQ(found.status, RunStatus::kOom);
  EXPECT_EQ(found.reason, "rank 1: out of memory: 3 MiB");
}

TEST_F(Measure, IsNoSuccessWithoutAllSteps) {
  launcher_.seconds = {1, 1};
  EXPECT_EQ(measured().status, RunStatus::kFail);
  EXPECT_THAT(measured().reason, HasSubstr("ended with 2 of 4 steps"));
}

TEST_F(Measure, KeepsPartersOfNotesOutOfTheReason) {
  launcher_.seconds.clear();
  launcher_.result = {LaunchEnd::kExited, 1, "error: this; that\n", 1};
  EXPECT_EQ(measured().reason, "this, that");
  launcher_.result = {LaunchEnd::kKilled, SIGKILL, "", 1};
  EXPECT_THAT(measured().reason, HasSubstr("KILL"));
}

TEST_F(Measure, GivesUpAfterTwoSlowSteps) {
  launcher_.seconds = {5, 6, 1, 1};
  const Measurement found = measured({.hopeless_step_seconds = 4});
  EXPECT_EQ(found.status, RunStatus::kTimeout);
  EXPECT_TRUE(found.is_given_up);
  EXPECT_EQ(found.num_steps, 2);
  launcher_.seconds = {5, 3, 1, 1};  // the first step is slower than the others
  EXPECT_EQ(measured({.hopeless_step_seconds = 4}).status, RunStatus::kOk);
}

}  // namespace
}  // namespace layline::sweep
