#include "layline/spec/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layline/spec/job.h"
#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

using testing::HasSubstr;

struct Published {
  const char* model;
  double parameters;
  double tolerance;  // relative; 0: the source gives the exact number
};

TEST(ModelParameters, AgreeWithWhatIsPublished) {
  const Published table[] = {
      // Weight files on the Hugging Face Hub, metadata of safetensors.
      {"llama-1-7b", 6738415616, 0},
      {"llama-1-13b", 13015864320, 0},
      {"llama-1-33b", 32528943616, 0},
      {"llama-1-65b", 65285660672, 0},
      {"llama-2-7b", 6738415616, 0},
      {"llama-2-13b", 13015864320, 0},
      {"llama-2-70b", 68976648192, 0},
      {"llama-3-8b", 8030261248, 0},
      {"llama-3-70b", 70553706496, 0},
      {"llama-3.1-8b", 8030261248, 0},
      {"llama-3.1-70b", 70553706496, 0},
      {"llama-3.1-405b", 405853388800, 0},
      {"llama-3.2-1b", 1235814400, 0},
      {"llama-3.2-3b", 3212749824, 0},
      {"mistral-7b", 7241732096, 0},
      {"qwen2.5-0.5b", 494032768, 0},
      {"qwen2.5-1.5b", 1543714304, 0},
      {"qwen2.5-3b", 3085938688, 0},
      {"qwen2.5-7b", 7615616512, 0},
      {"qwen2.5-14b", 14770033664, 0},
      {"qwen2.5-32b", 32763876352, 0},
      {"qwen2.5-72b", 72706203648, 0},
      // Narayanan et al. 2021, table 1: rounded to 0.1 B.
      {"gpt-1.7b", 1.7e9, 0.03},
      {"gpt-3.6b", 3.6e9, 0.015},
      {"gpt-7.5b", 7.5e9, 0.007},
      {"gpt-18b", 18.4e9, 0.003},
      {"gpt-39b", 39.1e9, 0.0015},
      {"gpt-76b", 76.1e9, 0.001},
      {"gpt-145b", 145.6e9, 0.0005},
      {"gpt-310b", 310.1e9, 0.0002},
      {"gpt-530b", 529.6e9, 0.0001},
      {"gpt-1t", 1008.0e9, 0.0001},
      {"gpt3-175b", 175e9, 0.003},
      // mosaicml/mpt-7b, mpt-30b: their exact counts have 64 more vocabulary rows and norms without biases.
      {"mpt-7b", 6649286656, 1e-5},
      {"mpt-30b", 30e9, 0.002},
      // Names of llm-foundry's configurations.
      {"mpt-125m", 125e6, 0.01},
      {"mpt-350m", 350e6, 0.02},
      {"mpt-760m", 760e6, 0.005},
      {"mpt-1b", 1.3e9, 0.02},
      {"mpt-3b", 2.7e9, 0.03},
      {"mpt-13b", 13e9, 0.02},
      {"mpt-70b", 65e9, 0.01},
      // Hagemann et al. 2024 with its vocabulary of 128,000: "14.0 B" of the 13B follows from its MFU table.
      {"llama-13b", 14.0e9, 0.001},
  };
  for (const Published& row : table) {
    const double counted = static_cast<double>(get_model(row.model).num_parameters());
    EXPECT_NEAR(counted, row.parameters, row.tolerance * row.parameters) << row.model;
  }
}

TEST(ModelParameters, AreWhatTheModelsOwnFileSays) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kModel) continue;
    const Model model = get_model(std::string(spec.name));
    if (model.published_parameters == 0) continue;
    const double published = static_cast<double>(model.published_parameters);
    EXPECT_NEAR(static_cast<double>(model.num_parameters()) / published, 1, 0.03) << model.name;
  }
}

TEST(ModelParameters, AreTheSumOfTheParts) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kModel) continue;
    const Model model = get_model(std::string(spec.name));
    EXPECT_EQ(model.num_parameters(), model.num_layers * model.layer_parameters() + model.embedding_parameters() +
                                          model.head_parameters() + model.final_norm_parameters());
    EXPECT_EQ(model.head_parameters() == 0, model.tied_embeddings) << model.name;
  }
}

TEST(ModelFlops, AreThoseOfThePapersHeadlineRun) {
  // 13B, 2048 sequences of 2048 tokens, 64 A100s, 26.54 s a step: 70.57 % (Hagemann et al. 2024, table 1).
  const double flops = get_model("llama-13b").flops_per_token(2048) * 2048 * 2048;
  EXPECT_NEAR(flops / (26.54 * 64 * 312e12), 0.7057, 0.002);
}

TEST(ModelFlops, CountHeadsNotHidden) {
  Model model = get_model("llama-13b");
  const double before = model.flops_per_token(4096) - 6.0 * static_cast<double>(model.num_parameters());
  model.head_size *= 2;
  const double after = model.flops_per_token(4096) - 6.0 * static_cast<double>(model.num_parameters());
  EXPECT_DOUBLE_EQ(after, 2 * before);
}

TEST(ThePapersModels, HaveItsSizes) {
  struct Sizes {
    const char* name;
    int64_t layers, hidden, heads, ffn;
  };
  for (const Sizes& s : {Sizes{"llama-13b", 40, 5120, 40, 13824}, Sizes{"llama-30b", 60, 6656, 52, 17920},
                         Sizes{"llama-65b", 80, 8192, 64, 22016}}) {
    const Model model = get_model(s.name);
    EXPECT_EQ(model.num_layers, s.layers);
    EXPECT_EQ(model.hidden, s.hidden);
    EXPECT_EQ(model.num_heads, s.heads);
    EXPECT_EQ(model.ffn_hidden, s.ffn);
    EXPECT_EQ(model.vocab, 128000);
    EXPECT_FALSE(model.tied_embeddings);
  }
}

TEST(ModelJson, ReadsBackWhatItWrites) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind != SpecKind::kModel) continue;
    const std::string text = to_json(get_model(std::string(spec.name)));
    const Model again = parse_model(text, "x.json");
    EXPECT_EQ(to_json(again), text);
    EXPECT_EQ(again.num_parameters(), get_model(std::string(spec.name)).num_parameters());
  }
}

Job good_job() {
  Job job;
  job.model = get_model("llama-13b");
  job.cluster = get_cluster("a100-80gb");
  job.engine = get_engine("aleph-scaling");
  job.num_gpus = 64;
  job.global_batch = 2048;
  job.sequence_length = 2048;
  return job;
}

TEST(JobCheck, AcceptsWholeNodesAndLessThanANode) {
  for (const int64_t gpus : {1, 2, 3, 7, 8, 16, 24, 64, 1'000'000}) {
    Job job = good_job();
    job.num_gpus = gpus;
    EXPECT_NO_THROW(check_job(job)) << gpus;
  }
}

TEST(JobCheck, SaysWhatIsWrong) {
  struct Case {
    void (*spoil)(Job&);
    const char* message;
  };
  const Case cases[] = {
      {[](Job& j) { j.num_gpus = 0; }, "--gpus: found 0, want 1 to 1000000"},
      {[](Job& j) { j.num_gpus = -8; }, "--gpus: found -8"},
      {[](Job& j) { j.num_gpus = 1'000'008; }, "--gpus: found 1000008"},
      {[](Job& j) { j.num_gpus = 12; }, "12 GPUs are neither less than a node nor whole nodes of 8"},
      {[](Job& j) { j.cluster.max_nodes = 4; }, "has 4 nodes of 8 GPUs"},
      {[](Job& j) { j.global_batch = 0; }, "--global-batch: found 0"},
      {[](Job& j) { j.sequence_length = -1; }, "--seq-len: found -1"},
      {[](Job& j) { j.global_batch = j.sequence_length = int64_t{1} << 31; }, "tokens a step"},
      {[](Job& j) { j.precision = Precision::kFp8; }, "has no fp8"},
      {[](Job& j) { j.cluster = get_cluster("v100-32gb"); }, "has no bf16"},
      {[](Job& j) { j.precision = Precision::kFp32; }, "engine aleph-scaling has no fp32"},
      {[](Job& j) { j.model.num_experts = 8; }, "mixtures of experts"},
      {[](Job& j) { j.model.hidden = 0; }, "hidden is 0"},
  };
  for (const Case& c : cases) {
    Job job = good_job();
    c.spoil(job);
    EXPECT_THAT(error_of([&] { check_job(job); }), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace layline::spec::test
