// Runs of layline-train, started by `layline train` or by hand as other launchers do.
#include <string>

#include "tests/trainer/programs/train_programs.h"

namespace layline::test {

using nlohmann::json;

namespace {

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

double sum_of(const json& numbers) {
  double sum = 0;
  for (const auto& [name, number] : numbers.items()) sum += number.get<double>();
  return sum;
}

TEST_F(TrainPrograms, EachStageSaysWhatItsTimeAndItsBytesWentTo) {
  ASSERT_EQ(layline("train run.json --nproc 4 --set 'layout=tp2 pp2 mb1' --set precision=bf16").code, 0);
  const std::vector<json> metrics = rows();
  for (const json& row : metrics) {
    ASSERT_EQ(row["seconds_by_stage"].size(), 2u);
    ASSERT_EQ(row["memory_bytes_by_stage"].size(), 2u);
    for (size_t stage = 0; stage < 2; ++stage) {
      const json& seconds = row["seconds_by_stage"][stage];
      EXPECT_NEAR(sum_of(seconds), row["step_seconds"].get<double>(), 0.1 * row["step_seconds"].get<double>()) << row;
      for (const char* work :
           {"matrix_multiplication", "attention", "memory_bound", "tensor_parallel", "pipeline", "optimizer"}) {
        EXPECT_GT(seconds[work].get<double>(), 0) << work << row;
      }
      EXPECT_EQ(seconds["recomputation"], 0) << row;
      const json& bytes = row["memory_bytes_by_stage"][stage];
      const double peak = row["peak_memory_bytes_by_stage"][stage].get<double>();
      EXPECT_NEAR(sum_of(bytes), peak, 0.01 * peak) << row;
    }
  }
}

TEST_F(TrainPrograms, RecomputationIsTimedOnItsOwn) {
  ASSERT_EQ(layline("train run.json --set 'layout=mb1 ckpt=full'").code, 0);
  for (const json& row : rows()) EXPECT_GT(row["seconds_by_stage"][0]["recomputation"].get<double>(), 0) << row;
}

TEST_F(TrainPrograms, ExplainPutsMeasuredBesidePredicted) {
  ASSERT_EQ(layline("train run.json --nproc 2 --set 'layout=pp2 mb1' --set model=llama-tiny --set cluster=cpu").code,
            0);
  const std::string explain =
      "explain --model llama-tiny --cluster cpu --gpus 2 --global-batch 4 --seq-len 16 --layout 'dp1 tp1 pp2 mb1' ";
  const Result result = layline(explain + "--measured metrics.jsonl --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json measured = json::parse(result.out)["measured"];
  EXPECT_EQ(measured["num_steps"], 1);
  EXPECT_EQ(measured["step_seconds"]["measured"], rows().back()["step_seconds"]);
  EXPECT_EQ(measured["stages"][1]["peak_memory_bytes"]["measured"], rows().back()["peak_memory_bytes_by_stage"][1]);
  EXPECT_GT(measured["seconds"]["matrix_multiplication"]["measured"], 0);
  EXPECT_TRUE(has(layline(explain + "--measured metrics.jsonl").out, "measured, the median of 1 steps"));
  expect_error(layline(explain + "--measured none.jsonl"), {"none.jsonl: is not there"});
  expect_error(layline("explain --model llama-tiny --cluster cpu --gpus 1 --global-batch 4 --seq-len 16 --layout mb1 "
                       "--measured metrics.jsonl"),
               {R"(step 1: is of layout "dp1 tp1 pp2 mb1", not of "dp1 tp1 pp1 mb1")"});
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
  const Result result = shell("{} train run.json --nproc 2 --set steps=100000000 > out.txt & pid=$!; " +
                              until_a_step_is_in("out.txt") + "kill -INT $pid; wait $pid");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_FALSE(rows().empty());  // and all are whole
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
