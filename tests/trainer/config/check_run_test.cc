#include "layline/trainer/config/check_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/config/runs.h"

namespace layline::trainer::config::test {
namespace {

using testing::HasSubstr;

// A folder of its own, with a text file, an indexed data set, halves of others and a folder.
class CheckRun : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("layline_" + std::string(info.name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_ / "folder");
    for (const char* name : {"corpus", "set.bin", "damaged.bin", "damaged.idx", "bin-only.bin", "idx-only.idx"}) {
      std::ofstream(folder_ / name) << std::string(name == std::string("set.bin") ? 600 : 601, 't');
    }
    write_index("set.idx");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Of 600 tokens of a byte in one document, as Megatron-LM writes it.
  void write_index(const std::string& name) const {
    std::ofstream out(folder_ / name, std::ios::binary);
    const auto put = [&](auto value) { out.write(reinterpret_cast<const char*>(&value), sizeof(value)); };
    out.write("MMIDIDX\0\0", 9);
    put(uint64_t{1});
    put(uint8_t{1});
    put(uint64_t{1});
    put(uint64_t{2});
    put(int32_t{600});
    put(int64_t{0});
    put(int64_t{0});
    put(int64_t{1});
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  RunConfig run(std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), "data.train=" + path("corpus"));
    return parse(kSmallest, overrides);
  }
  std::string mistake(const std::vector<std::string>& overrides) const {
    return error_of([&] { check_run(run(overrides)); });
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(CheckRun, GoodRunsPass) {
  EXPECT_NO_THROW(check_run(run()));
  EXPECT_NO_THROW(check_run(run({"data.train=" + path("set"), "metrics=" + path("metrics.jsonl")})));
  EXPECT_NO_THROW(check_run(run({"data.train=" + path("set"), "data.tokenizer=spiece.model"})));
  EXPECT_NO_THROW(check_run(run({"data.valid=" + path("corpus"), "data.valid_every_steps=1"})));
  EXPECT_NO_THROW(check_run(run({"model=llama-3.1-8b"})));
  EXPECT_NO_THROW(check_run(run({"stop_after_seconds=10"})));
}

TEST_F(CheckRun, DataThatIsNotThereIsSaidWithItsKey) {
  const std::pair<const char*, const char*> table[] = {
      {"missing", "found neither"},     {"corpu", "did you mean"}, {"bin-only", "lacks its index"},
      {"idx-only", "lacks its tokens"}, {"folder", "is a folder"}, {"damaged", "damaged.idx"}};
  for (const auto& [name, message] : table) {
    EXPECT_THAT(mistake({"data.train=" + path(name)}), HasSubstr(message)) << name;
    EXPECT_THAT(mistake({"data.train=" + path(name)}), HasSubstr(": $.data.train: ")) << name;
    EXPECT_THAT(mistake({"data.valid=" + path(name)}), HasSubstr(": $.data.valid: ")) << name;
    const std::string list = R"(data.train=[{"path": ")" + path("corpus") + R"("}, {"path": ")" + path(name) + R"("}])";
    EXPECT_THAT(mistake({list}), HasSubstr(message)) << name;
  }
}

TEST_F(CheckRun, WhatThisBuildDoesNotDoIsRefused) {
  EXPECT_THAT(mistake({"device=cuda"}), HasSubstr("$.device: this build has no CUDA support"));
  EXPECT_THAT(mistake({"data.tokenizer=spiece.model"}), HasSubstr("$.data.tokenizer: found \"spiece.model\""));
}

TEST_F(CheckRun, ModelsThatCannotBeTrainedAreRefused) {
  const std::pair<const char*, const char*> table[] = {
      {"gpt3-175b", "has LayerNorm"}, {"qwen2.5-0.5b", "has biases"}, {"mpt-7b", "has LayerNorm"}};
  for (const auto& [name, message] : table) {
    EXPECT_THAT(mistake({std::string("model=") + name}), HasSubstr(message)) << name;
  }
  const std::string yarn = R"(model={"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 256, "rope_scaling": {"rope_type": "yarn"}})";
  EXPECT_THAT(mistake({yarn}), HasSubstr("RoPE scaling \"yarn\" (linear and llama3 can be)"));
}

// What formats::open_tokens takes, a run may name.
TEST_F(CheckRun, DataMayBeNamedByEitherFileOfItsPair) {
  for (const char* name : {"set", "set.bin", "set.idx"}) {
    EXPECT_NO_THROW(check_run(run({"data.train=" + path(name), "data.tokenizer=spiece.model"}))) << name;
  }
}

TEST_F(CheckRun, DataMustHoldASampleOfTheVocabulary) {
  EXPECT_NO_THROW(check_run(run({"sequence_length=600"})));
  EXPECT_THAT(mistake({"sequence_length=601"}), HasSubstr("corpus: has 601 tokens; one sample of 601 needs 602"));
  EXPECT_THAT(mistake({"data.train=" + path("set"), "sequence_length=600"}), HasSubstr("set.bin: has 600 tokens"));
  std::ofstream(path("empty")).flush();
  EXPECT_THAT(mistake({"data.valid=" + path("empty")}), HasSubstr("$.data.valid: " + path("empty") + ": has 0 tokens"));
  const std::string model = R"(model={"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 116})";  // 't' is 116
  EXPECT_THAT(mistake({model}), HasSubstr("corpus: token 0 has the id 116; a vocabulary of 116 has ids 0 to 115"));
}

TEST_F(CheckRun, WeightsMustBeWhole) {
  const std::string load = "load=" + path("folder");
  EXPECT_THAT(mistake({"load=" + path("missing")}), HasSubstr("$.load: "));
  EXPECT_THAT(mistake({"load=" + path("corpus")}), HasSubstr("$.load: "));
  EXPECT_THAT(mistake({load}), HasSubstr("found neither model.safetensors nor model.safetensors.index.json"));
  const std::string shard = "model-00001-of-00001.safetensors";
  std::ofstream(path("folder/" + shard)) << std::string("\x02\0\0\0\0\0\0\0{}", 10);
  EXPECT_THAT(mistake({load}), HasSubstr("found neither"));
  const auto index = [&](const std::string& file) {
    std::ofstream(path("folder/model.safetensors.index.json")) << R"({"weight_map": {"w": ")" << file << R"("}})";
  };
  index("model-00002-of-00002.safetensors");
  EXPECT_THAT(mistake({load}), HasSubstr("\"w\" is said to be in model-00002-of-00002.safetensors, which is missing"));
  index(shard);
  EXPECT_THAT(mistake({load}), HasSubstr("\"w\" is said to be in " + shard + ", which lacks it"));
  std::ofstream(path("folder/model.safetensors")) << std::string("\x09\0\0\0\0\0\0\0{}", 10);
  EXPECT_THAT(mistake({load}), HasSubstr("model.safetensors: byte 0: a header of 9 bytes, but only 2 follow"));
  std::ofstream(path("folder/model.safetensors")) << std::string("\x02\0\0\0\0\0\0\0{}", 10);
  EXPECT_NO_THROW(check_run(run({load})));
  EXPECT_NO_THROW(check_run(run({load + "/model.safetensors"})));
}

TEST_F(CheckRun, OutputNeedsItsFolder) {
  EXPECT_THAT(mistake({"metrics=" + path("no/metrics.jsonl")}), HasSubstr("$.metrics: "));
  EXPECT_THAT(mistake({"metrics=" + path("folder")}), HasSubstr("is a folder"));
  if (geteuid() == 0) return;  // may write anything
  std::ofstream(path("locked")) << "";
  std::filesystem::permissions(path("locked"), std::filesystem::perms::owner_read);
  EXPECT_THAT(mistake({"metrics=" + path("locked")}), HasSubstr("cannot be written: Permission denied"));
}

TEST_F(CheckRun, CheckpointsNeedAPlaceOfTheirOwn) {
  EXPECT_NO_THROW(check_run(run({"checkpoint.directory=" + path("folder")})));
  EXPECT_NO_THROW(check_run(run({"checkpoint.directory=" + path("new/folder")})));
  EXPECT_THAT(mistake({"checkpoint.directory=" + path("corpus")}),
              HasSubstr("$.checkpoint.directory: \"" + path("corpus") + "\" is a file, want a folder"));
  const std::string step = "folder/step-0000000040";
  std::filesystem::create_directories(path(step));
  EXPECT_NO_THROW(check_run(run({"checkpoint.directory=" + path("folder")})));  // it was never finished
  std::ofstream(path(step + "/manifest.json")) << "{}";
  EXPECT_THAT(mistake({"checkpoint.directory=" + path("folder")}),
              HasSubstr("has a checkpoint of step 40: set checkpoint.resume to true"));
  EXPECT_NO_THROW(check_run(run({"checkpoint.directory=" + path("folder"), "checkpoint.resume=true"})));
}

TEST_F(CheckRun, OutputIsNeverAppendedToInput) {
  EXPECT_THAT(mistake({"metrics=" + path("corpus")}), HasSubstr("is what the run reads"));
  for (const char* file : {"set.bin", "set.idx"}) {
    EXPECT_THAT(mistake({"data.valid=" + path("set"), "metrics=" + path(file)}), HasSubstr("is what the run reads"));
  }
}

TEST_F(CheckRun, MistakesOfTheCommandLineNameItsFlag) {
  EXPECT_THAT(mistake({"metrics=" + path("folder")}),
              testing::StartsWith("--set metrics=" + path("folder") + ": $.metrics: "));
  EXPECT_THAT(mistake({R"(data={"train": "none"})"}),
              testing::StartsWith(R"(--set data={"train": "none"}: $.data.train: )"));
}

}  // namespace
}  // namespace layline::trainer::config::test
