// Checkpoints as a user meets them: signals, folders that cannot be written, two runs at once, damage.
#include <algorithm>
#include <string>
#include <vector>

#include "layline/trainer/checkpoint/folder.h"
#include "tests/trainer/programs/train_programs.h"

namespace layline::test {
namespace {

namespace checkpoint = trainer::checkpoint;
namespace fs = std::filesystem;

class Checkpoints : public TrainPrograms {
 protected:
  static std::string train(const std::string& flags) {
    return "{} train run.json --set checkpoint.directory=saved " + flags;
  }
  std::vector<int64_t> steps() const { return checkpoint::committed_steps(path("saved")); }
  std::string step_path(int64_t step) const { return checkpoint::step_folder(path("saved"), step); }

  // Flips a bit of one of its shards.
  void damage(int64_t step) const {
    for (const auto& file : fs::directory_iterator(step_path(step))) {
      if (file.path().extension() != ".safetensors") continue;
      std::string bytes = read_text(file.path());
      bytes[bytes.size() - 5000] ^= 1;
      write_text(file.path(), bytes);
      return;
    }
  }
};

TEST_F(Checkpoints, AreWrittenWhileTrainingGoesOnAndAtTheEnd) {
  const Result result = shell(train("--nproc 2 --set layout=dp2 --set steps=7 --set checkpoint.every_steps=2"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(steps(), (std::vector<int64_t>{7, 6}));  // of 2, 4, 6 and 7 two are kept
  EXPECT_TRUE(has(result.out, "checkpoint of step 7: saved/step-0000000007"));
}

TEST_F(Checkpoints, ARunThatIsDoneHasNothingLeftToDo) {
  EXPECT_EQ(shell(train("")).code, 0);
  const Result again = shell(train("--set checkpoint.resume=true"));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(again.out, "going on from saved/step-0000000003: step 3"));
  EXPECT_EQ(rows().size(), 3U);
}

TEST_F(Checkpoints, SignalsWriteOneFirst) {
  for (const auto& [signal, code] : {std::pair{"TERM", 143}, std::pair{"INT", 130}}) {
    fs::remove_all(path("saved"));
    fs::remove(path("out.txt"));
    const Result result = shell(train("--nproc 2 --set layout=tp2 --set steps=1000000") + " > out.txt & pid=$!; " +
                                until_a_step_is_in("out.txt") + "kill -" + signal + " $pid; wait $pid");
    EXPECT_EQ(result.code, code) << result.err;
    ASSERT_EQ(steps().size(), 1U);
    EXPECT_EQ(steps()[0], rows().back()["step"].get<int64_t>());
  }
}

TEST_F(Checkpoints, StopAfterSecondsWritesOne) {
  const Result result = shell(train("--set steps=1000000 --set stop_after_seconds=0.5"));
  EXPECT_EQ(result.code, 0) << result.err;
  ASSERT_EQ(steps().size(), 1U);
  const Result resumed = shell(train("--set checkpoint.resume=true --set steps=" + std::to_string(steps()[0] + 2)));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(rows().back()["step"], steps()[0]);
}

TEST_F(Checkpoints, OfAnotherRunAreNotMixed) {
  EXPECT_EQ(shell(train("")).code, 0);
  expect_error(shell(train("")), {"\"saved\" has a checkpoint of step 3: set checkpoint.resume to true"});
  EXPECT_EQ(steps(), std::vector<int64_t>{3});
}

TEST_F(Checkpoints, TwoRunsAtOnceAreRefused) {
  const std::string flags = "--set steps=100000000 --set metrics=null";
  const Result result = shell(train(flags) + " > out.txt & pid=$!; " + until_a_step_is_in("out.txt") +
                              train("--set checkpoint.resume=true --set metrics=null") +
                              "; code=$?; kill -TERM $pid; wait $pid; exit $code");
  expect_error(result, {"saved: another run writes its checkpoints there (process "});
}

TEST_F(Checkpoints, DamageIsAnErrorAndPreviousIsTheWayBack) {
  EXPECT_EQ(shell(train("--set steps=6 --set checkpoint.every_steps=3")).code, 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{6, 3}));
  damage(6);
  const std::string more = "--set steps=8 --set checkpoint.resume=";
  const Result refused = shell(train(more + "true"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "saved/step-0000000006/shard-00000-of-00001.")) << refused.err;
  EXPECT_TRUE(has(refused.err, "is damaged")) << refused.err;
  EXPECT_EQ(steps(), (std::vector<int64_t>{6, 3}));
  const Result back = shell(train(more + "previous"));
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_TRUE(has(back.out, "going on from saved/step-0000000003")) << back.out;
  EXPECT_EQ(steps(), (std::vector<int64_t>{8, 3}));
  EXPECT_TRUE(fs::exists(step_path(6) + ".set-aside"));
}

TEST_F(Checkpoints, AModelOfOtherSizesIsRefused) {
  EXPECT_EQ(shell(train("")).code, 0);
  EXPECT_TRUE(has(shell(train("--set checkpoint.resume=true --set precision=fp64")).err, "$.precision: "));
  std::string run = read_text(path("run.json"));
  run.replace(run.find("\"hidden_size\": 16"), 17, "\"hidden_size\": 32");
  write_text(path("run.json"), run);
  const Result result = shell(train("--set checkpoint.resume=true"));
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "weight lm_head.weight is 256 x 16 and not 256 x 32")) << result.err;
}

TEST_F(Checkpoints, InfoSaysWhatIsThere) {
  EXPECT_EQ(shell(train("--set steps=6 --set checkpoint.every_steps=3")).code, 0);
  const Result text = layline("checkpoint info saved");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"saved/step-0000000006\n", "6, 384 tokens, next sample 24", "weights and moments in fp32",
                           "also there  step 3"}) {
    EXPECT_TRUE(has(text.out, part)) << part << " is not in " << text.out;
  }
  const nlohmann::json json = nlohmann::json::parse(layline("checkpoint info saved/step-0000000003 --json").out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["step"], 3);
  EXPECT_GT(json["size_bytes"].get<int64_t>(), 12 * json["num_parameters"].get<int64_t>());
  expect_error(layline("checkpoint info none"), {"none: there is no such folder"});
}

TEST_F(Checkpoints, VerifyNamesWhatIsDamaged) {
  EXPECT_EQ(shell(train("--nproc 2 --set layout=dp2")).code, 0);
  const Result good = layline("checkpoint verify saved");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_TRUE(has(good.out, "saved/step-0000000003: good: 2 files"));
  damage(3);
  const Result bad = layline("checkpoint verify saved --json");
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(has(bad.err, "is damaged: bytes ")) << bad.err;
  EXPECT_EQ(nlohmann::json::parse(bad.out)["mistakes"].size(), 1U);
}

TEST_F(Checkpoints, ExportedAndImportedTrainOnAsTheirWeightsDo) {
  EXPECT_EQ(shell(train("")).code, 0);
  EXPECT_EQ(layline("checkpoint export saved mine --dtype fp32").code, 0);
  const auto losses = [&](const std::string& flags) {
    fs::remove(path("metrics.jsonl"));
    const Result result = shell("{} train run.json --set steps=2 " + flags);
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<std::pair<double, double>> numbers;
    for (const nlohmann::json& row : rows()) numbers.emplace_back(row["loss"], row["grad_norm"]);
    return numbers;
  };
  const auto loaded = losses("--set load=mine");
  EXPECT_EQ(layline("checkpoint import mine imported").code, 0);
  EXPECT_TRUE(has(layline("checkpoint info imported").out, "weights in fp32, from mine"));
  EXPECT_EQ(losses("--set checkpoint.directory=imported --set checkpoint.resume=true"), loaded);
  EXPECT_EQ(loaded.size(), 2U);
}

TEST_F(Checkpoints, ConvertedGoOnInTheOtherPrecision) {
  EXPECT_EQ(shell(train("")).code, 0);
  EXPECT_EQ(layline("checkpoint convert saved wide --dtype fp64 --shard-size 10kb").code, 0);
  const Result wide = shell(
      "{} train run.json --set checkpoint.directory=wide --set checkpoint.resume=true --set "
      "precision=fp64 --set steps=4 --nproc 2 --set layout=tp2");
  EXPECT_EQ(wide.code, 0) << wide.err;
  EXPECT_EQ(rows().back()["step"], 4);
  EXPECT_EQ(layline("checkpoint convert saved weights --drop-moments").code, 0);
  EXPECT_TRUE(has(layline("checkpoint info weights").out, "weights in fp32, of a run in fp32"));
}

TEST_F(Checkpoints, ConversionsLeaveWhatIsThereAndSayWhatIsWrong) {
  EXPECT_EQ(shell(train("")).code, 0);
  EXPECT_EQ(layline("checkpoint export saved mine").code, 0);
  expect_error(layline("checkpoint export saved mine"), {"mine: is there already"});
  expect_error(layline("checkpoint export saved none/mine"), {"none/mine: cannot be made"});
  expect_error(layline("checkpoint import mine saved"), {"saved: has a checkpoint of step 3 already"});
  std::string config = read_text(path("mine/config.json"));
  config.replace(config.find("\"intermediate_size\": 32"), 23, "\"intermediate_size\": 48");
  write_text(path("mine/config.json"), config);
  expect_error(layline("checkpoint import mine other"), {"weight \"model.layers.0.mlp.down_proj.weight\" is 16 x 32"});
  EXPECT_FALSE(fs::exists(path("other/step-0000000000")));
  damage(3);
  EXPECT_EQ(layline("checkpoint export saved again").code, 2);
  for (const auto& entry : fs::directory_iterator(path(""))) {
    EXPECT_FALSE(has(entry.path().filename().string(), "again")) << entry.path();
  }
}

// The folder goes while the run is on: the first save into it fails.
class LostFolder : public Checkpoints {
 protected:
  Result run_and_lose(const std::string& flags, const std::string& then) const {
    return shell(train("--nproc 2 --set layout=dp2 --set checkpoint.every_steps=40 --set steps=100000000 " + flags) +
                 " > out.txt & pid=$!; " + until_a_step_is_in("out.txt") + "mv saved gone; touch saved; " + then);
  }
};

TEST_F(LostFolder, EndsTheRun) {
  const Result result = run_and_lose("", "wait $pid");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "was not written: saved/step-")) << result.err;
  EXPECT_TRUE(has(result.err, "Not a directory; there is none")) << result.err;
}

TEST_F(LostFolder, IsSaidAtEveryStepWhereTheRunGoesOn) {
  const Result result =
      run_and_lose("--set checkpoint.on_error=continue",
                   "for i in $(seq 1000); do [ $(grep -c 'was not written' out.txt) -gt 5 ] && break; "
                   "sleep 0.01; done; rm saved; mv gone saved; for i in $(seq 1000); do grep -q "
                   "'^checkpoint of' out.txt && break; sleep 0.01; done; kill -TERM $pid; wait $pid");
  EXPECT_EQ(result.code, 143) << result.err;
  EXPECT_TRUE(has(read_text(path("out.txt")), "checkpoint of step 40 was not written: saved/step-0000000040"));
  EXPECT_GE(steps().size(), 1U);
  EXPECT_EQ(steps()[0], rows().back()["step"].get<int64_t>());
}

// A small file system of its own, of which only the command in quotes and its children know.
class SmallDisk : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    if (shell("unshare --mount --map-root-user true").code != 0) GTEST_SKIP() << "no mounts without being root";
    fs::create_directory(path("saved"));
  }
  Result on_disk(const std::string& options, const std::string& command) const {
    return shell("unshare --mount --map-root-user sh -c 'mount -t tmpfs -o " + options + " none saved && { " + command +
                 "; }'");
  }
  static constexpr const char* kVerify =
      "code=$?; {} checkpoint verify saved/step-0000000003; {} checkpoint verify saved/step-0000000006; "
      "ls saved; exit $code";
  // Two checkpoints of the run have room on it, and a half.
  static constexpr const char* kRoomForTwo = "size=430k";
};

TEST_F(SmallDisk, AFullOneEndsTheRunAndLeavesWhatIsThere) {
  const Result result = on_disk(kRoomForTwo, train("--nproc 2 --set layout=dp2 --set steps=9 --set "
                                                   "checkpoint.every_steps=3; ") +
                                                 kVerify);
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "the checkpoint of step 9 was not written: ")) << result.err;
  EXPECT_TRUE(has(result.err, "No space left on device; the last good one is of step 6")) << result.err;
  EXPECT_TRUE(has(result.out, "saved/step-0000000003: good")) << result.out;
  EXPECT_TRUE(has(result.out, "saved/step-0000000006: good")) << result.out;
  EXPECT_FALSE(has(result.out, "step-0000000009\n")) << result.out;
}

TEST_F(SmallDisk, AFullOneIsSaidAtEveryStepWhereTheRunGoesOn) {
  const Result result =
      on_disk(kRoomForTwo,
              train("--set steps=30 --set checkpoint.every_steps=3 --set checkpoint.on_error=continue; ") + kVerify);
  EXPECT_EQ(result.code, 1) << "the last step was not saved";
  EXPECT_EQ(rows().size(), 30U);
  EXPECT_TRUE(has(result.out, "the checkpoint of step 9 was not written: ")) << result.out;
  EXPECT_TRUE(has(result.out, "saved/step-0000000006: good")) << result.out;
}

TEST_F(SmallDisk, AReadOnlyOneIsRefusedAtTheStart) {
  expect_error(on_disk("size=1m,ro", train("")), {"saved", "Read-only file system"});
}

}  // namespace
}  // namespace layline::test
