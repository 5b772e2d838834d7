// Ranks that are killed, stopped or left alone: the run ends soon, with one line and with nobody left.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <tuple>

#include "tests/trainer/programs/train_programs.h"

namespace layline::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSoonSeconds = 10;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class LostRanks : public TrainPrograms {
 protected:
  void SetUp() override {
    TrainPrograms::SetUp();
    start_ = Clock::now();
  }
  void TearDown() override {
    expect_nobody_left();
    EXPECT_LT(seconds_since(start_), kSoonSeconds + 10);
    TrainPrograms::TearDown();
  }

  // A run without an end, in the background as $pid; `then` is done when it trains.
  Result while_it_trains(const std::string& flags, const std::string& then) const {
    return shell("{} train run.json --set steps=100000000 " + flags + " > out.txt & pid=$!; " +
                 until_a_step_is_in("out.txt") + then);
  }

  // Of `layline train` at $pid.
  static std::string pid_of(int rank) { return "$(pgrep -P $pid | sed -n " + std::to_string(rank + 1) + "p)"; }

  // No layline-train runs in the test's folder. They are given a moment: killing is not waiting.
  void expect_nobody_left() const {
    int left = 0;
    for (const auto start = Clock::now(); seconds_since(start) < kSoonSeconds;) {
      left = num_processes();
      if (left == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << left << " ranks are left";
  }

 private:
  Clock::time_point start_;
};

class KilledRank : public LostRanks, public testing::WithParamInterface<std::tuple<int, std::string>> {};

TEST_P(KilledRank, IsNamedInTheOnlyLine) {
  const auto& [rank, layout] = GetParam();
  const Result result =
      while_it_trains("--nproc 2 --set 'layout=" + layout + "'", "kill -9 " + pid_of(rank) + "; wait $pid");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank " + std::to_string(rank) + " was killed by signal 9 (SIGKILL)\n");
}

INSTANTIATE_TEST_SUITE_P(RanksAndLayouts, KilledRank,
                         testing::Combine(testing::Values(0, 1),
                                          testing::Values(std::string("dp2 mb1"), std::string("pp2 mb1"))));

TEST_F(LostRanks, OneThatIsKilledBeforeItsFirstStepIsNamed) {
  const Result result = shell(
      "{} train run.json --nproc 2 --grace-seconds 0.5 & pid=$!; for i in $(seq 500); do [ \"$(pgrep -P $pid | wc "
      "-l)\" = 2 ] && break; "
      "sleep 0.01; done; kill -9 " +
      pid_of(1) + "; wait $pid");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 1 was killed by signal 9 (SIGKILL)\n");
}

TEST_F(LostRanks, OneThatIsStoppedIsNamedAfterTheTimeout) {
  const Result result = while_it_trains("--nproc 2 --grace-seconds 0.5 --set timeout_seconds=1",
                                        "kill -STOP " + pid_of(1) + "; wait $pid");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(has(result.err, "rank 1")) << result.err;
}

TEST_F(LostRanks, DoNotOutliveLaylineTrain) {
  while_it_trains("--nproc 2", "kill -9 $pid; wait $pid");
  std::filesystem::remove(path("out.txt"));
  shell("{} train run.json --nproc 2 & sleep 0.1; kill -9 $!; wait $!");
}

TEST_F(LostRanks, DoNotOutliveALauncherThatIsKilled) {
  for (const char* variables :
       {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=none RANK=0 WORLD_SIZE=1"}) {
    std::filesystem::remove(path("out.txt"));
    run("bash -c '" + std::string(variables) + " {rank} run.json --set steps=100000000 > out.txt; exit 0' & pid=$!; " +
        until_a_step_is_in("out.txt") + "kill -9 $pid; wait $pid");
    expect_nobody_left();
  }
}

TEST_F(LostRanks, ASecondInterruptEndsTheRunAtOnce) {
  const Result result = while_it_trains("--nproc 2", "kill -INT $pid; kill -TERM $pid; wait $pid");
  EXPECT_TRUE(result.code == 130 || result.code == 143) << result.code;
  EXPECT_EQ(result.err, "");
}

// Before the first step there is nothing to save.
TEST_F(LostRanks, ATerminationEndsARankThatStillWaitsForOthers) {
  const auto start = Clock::now();
  const Result result =
      run("P=$((20000 + $$ % 10000)); RANK=0 WORLD_SIZE=2 MASTER_PORT=$P {rank} run.json & pid=$!; sleep 1; "
          "kill -TERM $pid; wait $pid");
  EXPECT_EQ(result.code, 143);
  EXPECT_LT(seconds_since(start), 5);
}

TEST_F(LostRanks, LeaveMetricsThatALaterRunGoesOnWith) {
  while_it_trains("--nproc 2", "kill -9 $pid; wait $pid");
  write_text(path("metrics.jsonl"), read_text(path("metrics.jsonl")) + R"({"step":2,"lo)");
  const size_t before = [&] {
    const std::string text = read_text(path("metrics.jsonl"));
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }();
  ASSERT_EQ(layline("train run.json").code, 0);
  EXPECT_EQ(rows().size(), before + 3);  // each of them JSON
}

}  // namespace
}  // namespace layline::test
