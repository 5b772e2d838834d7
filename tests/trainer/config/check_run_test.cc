#include "layline/trainer/config/check_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
      std::ofstream(folder_ / name) << "text";
    }
    write_index("set.idx");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Of four tokens of a byte in one document, as Megatron-LM writes it.
  void write_index(const std::string& name) const {
    std::ofstream out(folder_ / name, std::ios::binary);
    const auto put = [&](auto value) { out.write(reinterpret_cast<const char*>(&value), sizeof(value)); };
    out.write("MMIDIDX\0\0", 9);
    put(uint64_t{1});
    put(uint8_t{1});
    put(uint64_t{1});
    put(uint64_t{2});
    put(int32_t{4});
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
    EXPECT_THAT(mistake({"data.train=" + path(name)}), HasSubstr("run.json: $.data.train: ")) << name;
    EXPECT_THAT(mistake({"data.valid=" + path(name)}), HasSubstr("run.json: $.data.valid: ")) << name;
    const std::string list = R"(data.train=[{"path": ")" + path("corpus") + R"("}, {"path": ")" + path(name) + R"("}])";
    EXPECT_THAT(mistake({list}), HasSubstr(message)) << name;
  }
}

TEST_F(CheckRun, WhatThisBuildDoesNotDoIsRefused) {
  EXPECT_THAT(mistake({"device=cuda"}), HasSubstr("$.device: this build has no CUDA support"));
  EXPECT_THAT(mistake({"checkpoint.directory=saved"}), HasSubstr("$.checkpoint.directory: this build cannot"));
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

TEST_F(CheckRun, WeightsNeedTheirFolder) {
  EXPECT_THAT(mistake({"load=" + path("missing")}), HasSubstr("$.load: "));
  EXPECT_THAT(mistake({"load=" + path("corpus")}), HasSubstr("is a file; want a folder"));
  EXPECT_THAT(mistake({"load=" + path("folder")}), HasSubstr("has no .safetensors file"));
  std::ofstream(path("folder/model-00001-of-00002.safetensors")) << "weights";
  EXPECT_NO_THROW(check_run(run({"load=" + path("folder")})));
}

TEST_F(CheckRun, OutputNeedsItsFolder) {
  EXPECT_THAT(mistake({"metrics=" + path("no/metrics.jsonl")}), HasSubstr("$.metrics: "));
  EXPECT_THAT(mistake({"metrics=" + path("folder")}), HasSubstr("is a folder"));
}

}  // namespace
}  // namespace layline::trainer::config::test
