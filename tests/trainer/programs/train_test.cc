// Runs of layline-train, started by `layline train` or by hand as other launchers do.
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

class TrainPrograms : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 500; ++i) text += "In the beginning God created the heaven and the earth. ";
    write_text(path("corpus"), text);
    write_text(path("run.json"), R"({"model": {"model_type": "llama", "hidden_size": 16, "intermediate_size": 32,
      "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 256}, "sequence_length": 16, "global_batch": 4,
      "steps": 3, "precision": "fp32", "layout": "mb1", "data": {"train": "corpus"}, "metrics": "metrics.jsonl"})");
  }

  std::vector<json> rows() const {
    std::istringstream lines(read_text(path("metrics.jsonl")));
    std::vector<json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
    return rows;
  }

  // A shell line; `{rank}` stands for layline-train.
  Result run(std::string line) const {
    const std::string word = "{rank}";
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at)) {
      line.replace(at, word.size(), program() + "-train");
    }
    return shell(line);
  }
};

TEST_F(TrainPrograms, ARunWritesARowAndALineForEachStep) {
  for (const char* flags :
       {"--nproc 1", "--nproc 2", "--nproc 2 --set 'layout=pp2 mb2'", "--nproc 2 --set layout=auto"}) {
    std::filesystem::remove(path("metrics.jsonl"));
    const Result result = layline("train run.json " + std::string(flags));
    ASSERT_EQ(result.code, 0) << flags << result.err;
    EXPECT_EQ(result.err, "") << flags;
    const auto metrics = rows();
    ASSERT_EQ(metrics.size(), 3u) << flags;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(metrics[i]["step"], i + 1) << flags;
      EXPECT_EQ(metrics[i]["tokens"], (i + 1) * 64) << flags;
      EXPECT_TRUE(metrics[i]["mfu"].is_null()) << flags;
      EXPECT_TRUE(has(result.out, "step " + std::to_string(i + 1) + "/3  loss ")) << flags << result.out;
    }
    EXPECT_LT(metrics[2]["loss"].get<double>(), metrics[0]["loss"].get<double>()) << flags;
  }
}

TEST_F(TrainPrograms, UtilizationIsThereOnceAClusterSaysThePeak) {
  ASSERT_EQ(layline("train run.json --set cluster=cpu").code, 0);
  EXPECT_GT(rows().front()["mfu"].get<double>(), 0);
}

TEST_F(TrainPrograms, ALaterRunAppends) {
  ASSERT_EQ(layline("train run.json --set steps=1").code, 0);
  ASSERT_EQ(layline("train run.json --set steps=2").code, 0);
  EXPECT_EQ(rows().size(), 3u);
}

TEST_F(TrainPrograms, OtherLaunchersStartRanksThemselves) {
  for (const char* ranks : {"RANK=0 WORLD_SIZE=2 MASTER_PORT=$P {rank} run.json & RANK=1 WORLD_SIZE=2 MASTER_PORT=$P",
                            "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=$P {rank} run.json & SLURM_PROCID=1 "
                            "SLURM_NTASKS=2 SLURM_JOB_ID=$P",
                            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=job$P {rank} run.json & "
                            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=job$P"}) {
    std::filesystem::remove(path("metrics.jsonl"));
    const Result result =
        run("P=$((20000 + $$ % 10000)); " + std::string(ranks) + " {rank} run.json; code=$?; wait $! && exit $code");
    EXPECT_EQ(result.code, 0) << ranks << result.err;
    EXPECT_EQ(rows().size(), 3u) << ranks;
  }
}

TEST_F(TrainPrograms, MistakesAreOneLine) {
  expect_error(run("RANK=0 {rank} run.json"), {"RANK", "WORLD_SIZE"});
  expect_error(run("{rank} missing.json"), {"missing.json"});
  expect_error(run("{rank} run.json --set steps=x"), {"--set steps=x: $.steps"});
  expect_error(run("{rank}"), {"layline-train --help"});
  expect_error(run("{rank} run.json --stes x"), {"--stes"});
  expect_error(layline("train run.json --set sequence_length=100000"), {"corpus"});
  expect_error(layline("train run.json --nproc 2 --set sequence_length=100000"), {"corpus"});
  expect_error(layline("train run.json --set data.train=corpse"), {"corpse", "corpus"});
}

TEST_F(TrainPrograms, RanksOfDifferentRunsDoNotTrainTogether) {
  const Result result =
      run("P=$((20000 + $$ % 10000)); export WORLD_SIZE=2 MASTER_PORT=$P; RANK=0 LOCAL_RANK=0 {rank} run.json & "
          "RANK=1 LOCAL_RANK=1 {rank} run.json --set seed=2; code=$?; wait $!; [ $? = 2 ] && exit $code");
  expect_error(result, {"seed"});
}

TEST_F(TrainPrograms, AnInterruptStopsBetweenSteps) {
  const Result result = shell(
      "{} train run.json --nproc 2 --set steps=100000000 > out.txt & pid=$!; for i in $(seq 2000); do "
      "grep -sq '^step' out.txt && break; sleep 0.01; done; kill -INT $pid; wait $pid");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_FALSE(rows().empty());  // and all are whole
}

TEST_F(TrainPrograms, ARankThatIsKilledEndsTheRunWithOneLine) {
  const auto start = Clock::now();
  const Result result = shell(
      "{} train run.json --nproc 2 --set steps=100000000 > out.txt & pid=$!; for i in $(seq 2000); do "
      "grep -sq '^step' out.txt && break; sleep 0.01; done; kill -9 $(pgrep -P $pid | tail -1); wait $pid");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 1 was killed by signal 9 (SIGKILL)\n");
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 20);
}

TEST_F(TrainPrograms, AFullDiskEndsTheRun) {
  const Result result = layline("train run.json --set metrics=/dev/full");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "error: /dev/full: cannot write: No space left")) << result.err;
}

TEST_F(TrainPrograms, AReaderThatGoesAwayDoesNotEndTheRun) {
  EXPECT_EQ(shell("{} train run.json --set steps=8 | head -1 > /dev/null").code, 0);
  EXPECT_EQ(rows().size(), 8u);
}

}  // namespace
}  // namespace layline::test
