// `layline tune` with a shell script in place of layline-train, and on recorded sweeps.
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/apps/measured_runs.h"

namespace layline::test {
namespace {

using nlohmann::json;

// Micro-batches of 2 are twice as fast as the others.
const std::string kMb2IsFast =
    R"(s=1; case "$layout" in *mb2*) s=0.5;; esac; for i in 1 2 3 4 5; do step $i $s; done; )";

class Tune : public MeasuredRuns {
 protected:
  void SetUp() override {
    MeasuredRuns::SetUp();
    write_text(path("corpus"), std::string(1000, 'x'));
    write_text(path("run.json"), R"({"model": "llama-tiny", "sequence_length": 64, "global_batch": 4,
      "steps": 100, "data": {"train": "corpus"}})");
    write_rank(kMb2IsFast);
  }

  Result tune(const std::string& flags = "") const { return shell(kCommand + flags); }
  json tune_json(const std::string& flags = "") const {
    const Result result = tune("--json " + flags);
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out);
  }

  const std::string kCommand = "{} tune run.json --output runs.csv --program ./rank ";
};

TEST_F(Tune, FindsTheFastestLayoutAndSaysWhatToRun) {
  const json found = tune_json();
  EXPECT_TRUE(has(found["best_layout"], "mb2")) << found["best_layout"];
  EXPECT_EQ(found["best_step_seconds"], 0.5);
  EXPECT_EQ(found["best_run"]["layout"], found["best_layout"]);
  EXPECT_EQ(found["best_run"]["steps"], 100);
  EXPECT_LE(found["trials"].size(), 10u);
  EXPECT_EQ(records().size(), found["trials"].size());
  EXPECT_GT(found["sweep_seconds"], found["spent_seconds"]);
}

TEST_F(Tune, GoesOnWhereItEnded) {
  const json first = tune_json("--trials 2");
  EXPECT_EQ(first["trials"].size(), 2u);
  EXPECT_EQ(first["ended_by"], "trials");
  const std::string before = read_text(path("runs.csv"));
  const json second = tune_json("--trials 3");
  ASSERT_EQ(second["trials"].size(), 3u);
  EXPECT_EQ(second["trials"][1]["confidence"], first["trials"][1]["confidence"]);  // as if it had never ended
  EXPECT_EQ(read_text(path("runs.csv")).substr(0, before.size()), before);
  EXPECT_EQ(by_layout().size(), 3u);
}

TEST_F(Tune, StartsNoTrialWhenTheTimeIsOver) {
  const Result result = tune("--json --minutes 0");
  EXPECT_EQ(json::parse(result.out)["ended_by"], "time");
  EXPECT_TRUE(records().empty());
}

TEST_F(Tune, LosesNothingWhenInterrupted) {
  write_rank("[ -e once ] && { echo up > up.txt; exec sleep 100; }; touch once; " + kMb2IsFast);
  const Result result = interrupted(kCommand, "INT");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_TRUE(has(result.err, "goes on from here")) << result.err;
  EXPECT_EQ(records().size(), 1u);
  expect_nobody_left();
}

TEST_F(Tune, NothingThatFitsIsThree) {
  write_rank("echo 'error: out of memory: 5 GiB' >&2; exit 1");
  EXPECT_EQ(tune("--trials 2").code, 3);
  std::filesystem::remove(path("runs.csv"));
  write_rank("exit 1");
  EXPECT_EQ(tune("--trials 2").code, 1);
}

TEST_F(Tune, ReplaysWhatSweepRecorded) {
  write_text(path("sweep.json"), R"({"base": {"model": "llama-tiny", "sequence_length": 64, "global_batch": 4,
      "steps": 5, "data": {"train": "corpus"}}, "ranks": 1, "layouts": {"mb": [1, 2, 4], "ckpt": ["none", "full"]}})");
  ASSERT_EQ(shell("{} sweep sweep.json --output runs.csv --program ./rank").code, 0);
  const Result result = layline("tune --replay runs.csv --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json all = json::parse(result.out)["sweeps"];
  ASSERT_EQ(all.size(), 1u);
  const json& sweep = *all.begin();
  EXPECT_EQ(sweep["num_layouts"], 6);
  EXPECT_EQ(sweep["trials"].size(), sweep["regret_after_trial"].size());
  EXPECT_EQ(sweep["regret_after_trial"].back(), 0.0);
  EXPECT_TRUE(has(sweep["best_layout"], "mb2"));
}

TEST_F(Tune, MistakesAreOneLine) {
  expect_error(layline("tune"), {"neither RUN.json nor --replay"});
  expect_error(layline("tune run.json"), {"--output"});
  expect_error(layline("tune run.json --replay runs.csv"), {"--replay"});
  expect_error(layline("tune none.json --output runs.csv"), {"none.json: cannot read"});
  expect_error(tune("--nproc 5 --trials 0"), {"--trials"});
  write_text(path("run.json"), R"({"model": "llama-tiny", "sequence_length": 64, "global_batch": 4, "layout": "mb4",
      "steps": 3, "data": {"train": "corpus"}})");
  expect_error(tune(), {"run.json: $.layout", "leave it out"});
}

}  // namespace
}  // namespace layline::test
