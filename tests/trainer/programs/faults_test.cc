// What users and machines get wrong: one line from one rank, and the exit code that says who can mend it.
#include <algorithm>
#include <string>
#include <thread>

#include "tests/trainer/programs/train_programs.h"

namespace layline::test {
namespace {

class Faults : public TrainPrograms {
 protected:
  // Two ranks started by hand, each with its own flags; the result is rank 1's, the errors of both are one text.
  Result by_hand(const std::string& flags_0, const std::string& flags_1, const std::string& variables = "") const {
    return run("export WORLD_SIZE=2 MASTER_PORT=$((20000 + $$ % 10000)) " + variables +
               "; RANK=0 LOCAL_RANK=0 {rank} run.json " + flags_0 + " & pid=$!; RANK=1 LOCAL_RANK=1 {rank} run.json " +
               flags_1 + "; code=$?; wait $pid; [ $? = $code ] && exit $code");
  }

  static int64_t num_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
  void expect_failure(const Result& result, const std::vector<std::string>& parts) const {
    EXPECT_EQ(result.code, 1) << result.err;
    EXPECT_EQ(num_lines(result.err), 1) << result.err;
    for (const std::string& part : parts) EXPECT_TRUE(has(result.err, part)) << part << " in " << result.err;
  }
};

TEST_F(Faults, AMistakeThatAllRanksMakeIsSaidOnce) {
  expect_error(by_hand("--set data.train=corpse", "--set data.train=corpse"), {"--set data.train=corpse", "corpus"});
  expect_error(by_hand("--set layout=tp3", "--set layout=tp3"), {"--set layout=tp3: $.layout"});
}

TEST_F(Faults, AMistakeThatOneRankMakesIsSaidByIt) {
  expect_error(by_hand("", "--set layout=tp3"), {"rank 1: --set layout=tp3: $.layout"});
  expect_error(by_hand("--set data.train=corpse", ""), {"rank 0: --set data.train=corpse"});
  expect_error(by_hand("", "--set stes=4"), {"rank 1: --set stes=4: $.stes: unknown key"});
}

TEST_F(Faults, SettingsThatDifferAreNamedByTheirKey) {
  expect_error(by_hand("", "--set layout=dp2"), {"rank 1 has layout \"dp2\", rank 0 has \"mb1\""});
  expect_error(by_hand("--set optimizer.clip=2", ""), {"optimizer.clip \"1.0\", rank 0 has \"2.0\""});
}

TEST_F(Faults, AnUnwritableMetricsFileEndsAllRanksAtOnce) {
  expect_error(by_hand("--set metrics=/proc/none", "--set metrics=/proc/none"), {"rank 0: /proc/none: cannot write"});
}

TEST_F(Faults, AMasterThatDoesNotAnswerIsNamedAfterTheTimeout) {
  expect_error(run("RANK=1 WORLD_SIZE=2 MASTER_PORT=$((20000 + $$ % 10000)) timeout 20 {rank} run.json --set "
                   "timeout_seconds=1"),
               {"rank 1 could not reach rank 0", "127.0.0.1:"});
}

TEST_F(Faults, TwoRunsDoNotShareAPort) {
  const Result result =
      run("export WORLD_SIZE=2 RANK=0 MASTER_PORT=$((20000 + $$ % 10000)); {rank} run.json & pid=$!; sleep 1; "
          "{rank} run.json; code=$?; { kill $pid; wait $pid; } 2>&-; exit $code");
  expect_error(result, {"rank 0 cannot serve", "another run"});
}

TEST_F(Faults, TwoRunsDoNotShareAMetricsFile) {
  const Result result =
      shell("{} train run.json --set steps=100000000 > out.txt & pid=$!; " + until_a_step_is_in("out.txt") +
            "{} train run.json; code=$?; kill $pid; wait $pid; exit $code");
  expect_error(result, {"metrics.jsonl: another run writes to it"});
  EXPECT_FALSE(rows().empty());
}

TEST_F(Faults, ALossThatIsNoNumberIsSaidWithStepRankAndParameter) {
  expect_failure(layline("train run.json --nproc 2 --set optimizer.learning_rate=1e6 --set steps=50 > /dev/null"),
                 {"step ", "on rank ", "weight", "not finite"});
}

TEST_F(Faults, MemoryThatOneStageLacksEndsTheRunWithItsRank) {
  expect_failure(layline("train run.json --nproc 2 --set 'layout=pp2 split=1,1 mb1' --set memory_limit_bytes=150000 "
                         "--set model.vocab_size=1000 > /dev/null"),
                 {"rank ", "out of memory", "limit of 146 KiB"});
}

TEST_F(Faults, RanksWithoutOmpNumThreadsDivideTheCores) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const auto threads = [](size_t count) { return "threads    " + std::to_string(count) + " a rank"; };
  const Result result = by_hand("", "");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, threads(std::max<size_t>(1, cores / 2)))) << result.out;
  const size_t other = cores / 2 > 1 ? 1 : 2;
  const Result told = by_hand("", "", "OMP_NUM_THREADS=" + std::to_string(other));
  EXPECT_TRUE(has(told.out, threads(cores == 1 ? 1 : other))) << told.out << told.err;
}

}  // namespace
}  // namespace layline::test
