// config.json files as published on the Hugging Face Hub, cut to a few keys beside the sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

using testing::HasSubstr;

constexpr const char* kLlama3 = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
  "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 2048,
  "head_dim": 64, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072,
  "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
  "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0,
  "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
  "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256})";
constexpr const char* kMistral = R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false,
  "vocab_size": 32000})";
constexpr const char* kQwen = R"({"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "hidden_size": 896,
  "intermediate_size": 4864, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true, "use_mrope": false,
  "vocab_size": 151936})";
constexpr const char* kGpt2 = R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})";

TEST(HuggingFace, ParametersAreThoseOfTheWeightFiles) {
  EXPECT_EQ(parse_model(kLlama3, "x").num_parameters(), 1235814400);   // Llama-3.2-1B
  EXPECT_EQ(parse_model(kMistral, "x").num_parameters(), 7241732096);  // Mistral-7B-v0.1
  EXPECT_EQ(parse_model(kQwen, "x").num_parameters(), 494032768);      // Qwen2.5-0.5B
  EXPECT_EQ(parse_model(kGpt2, "x").num_parameters(), 124439808);      // gpt2
}

TEST(HuggingFace, SizesAreThoseOfTheShippedModels) {
  for (const auto& [config, name] :
       {std::pair{kLlama3, "llama-3.2-1b"}, {kMistral, "mistral-7b"}, {kQwen, "qwen2.5-0.5b"}}) {
    Model read = parse_model(config, "x");
    const Model shipped = get_model(name);
    read.name = shipped.name;
    read.title = shipped.title;
    read.aliases = shipped.aliases;
    read.source = shipped.source;
    read.published_parameters = shipped.published_parameters;
    EXPECT_EQ(to_json(read), to_json(shipped));
  }
}

TEST(HuggingFace, TheFolderNamesTheModel) {
  EXPECT_EQ(parse_model(kGpt2, "/models/gpt2/config.json").name, "gpt2");
  EXPECT_EQ(parse_model(kGpt2, "mine.json").name, "mine");
}

TEST(HuggingFace, WhatIsLeftOutMeansWhatTheFamilySays) {
  const Model llama = parse_model(with(with(kLlama3, "\"num_key_value_heads\": 8,", ""), "\"head_dim\": 64,", ""), "x");
  EXPECT_EQ(llama.num_kv_heads, 32);
  EXPECT_EQ(llama.head_size, 64);
  EXPECT_FALSE(parse_model(with(kLlama3, "\"tie_word_embeddings\": true,", ""), "x").tied_embeddings);
  EXPECT_EQ(parse_model(with(kMistral, "\"num_key_value_heads\": 8,", ""), "x").num_kv_heads, 8);
  EXPECT_EQ(
      parse_model(with(kMistral, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null"), "x").num_kv_heads, 32);
  EXPECT_EQ(parse_model(with(kLlama3, "\"head_dim\": 64", "\"head_dim\": null"), "x").head_size, 64);
  EXPECT_EQ(parse_model(with(kLlama3, "\"head_dim\": 64", "\"head_dim\": 128"), "x").attention_width(), 4096);
  EXPECT_TRUE(parse_model(kGpt2, "x").tied_embeddings);
  EXPECT_EQ(parse_model(kGpt2, "x").ffn_hidden, 3072);
  EXPECT_EQ(parse_model(with(kGpt2, "\"n_ctx\": 1024", "\"n_inner\": 1000"), "x").ffn_hidden, 1000);
  EXPECT_EQ(parse_model(with(kGpt2, "\"n_ctx\": 1024", "\"n_inner\": null"), "x").ffn_hidden, 3072);
  EXPECT_EQ(parse_model(with(kLlama3, "\"architectures\": [\"LlamaForCausalLM\"],", ""), "x").num_layers, 16);
  EXPECT_EQ(parse_model(with(kLlama3, "[\"LlamaForCausalLM\"]", "null"), "x").num_layers, 16);
  EXPECT_TRUE(parse_model(kQwen, "x").qkv_bias);
}

// The Llama 3.2 file with its rotary keys replaced.
Model llama_with_rope(const std::string& keys) {
  std::string config = kLlama3;
  const size_t start = config.find("\"rope_scaling\"");
  const std::string last = "\"rope_theta\": 500000.0";
  const size_t end = config.find(last) + last.size();
  return parse_model(config.replace(start, end - start, keys), "x");
}

TEST(HuggingFace, RotaryEmbeddingsAreReadInOldAndNewForms) {
  const std::string llama3 =
      R"("factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192)";
  for (const std::string& keys :
       {R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", )" + llama3 + "}",
        R"("rope_theta": 500000.0, "rope_scaling": {"type": "llama3", )" + llama3 + "}",
        R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", )" + llama3 + "}"}) {
    const Model read = llama_with_rope(keys);
    EXPECT_EQ(to_json(parse_model(to_json(read), "x")), to_json(read)) << keys;
    EXPECT_EQ(read.rope.theta, 500000) << keys;
    EXPECT_EQ(read.rope.scaling, RopeScaling::kLlama3) << keys;
    EXPECT_EQ(read.rope.factor, 32) << keys;
    EXPECT_EQ(read.rope.low_freq_factor, 1) << keys;
    EXPECT_EQ(read.rope.high_freq_factor, 4) << keys;
    EXPECT_EQ(read.rope.original_max_position_embeddings, 8192) << keys;
  }
  const Model linear = llama_with_rope(R"("rope_scaling": {"type": "linear", "factor": 2.5})");
  EXPECT_EQ(linear.rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(linear.rope.factor, 2.5);
  EXPECT_EQ(linear.rope.theta, 10000);
  for (const char* plain : {R"("rope_scaling": null)", R"("rope_theta": null)",
                            R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000})",
                            R"("rope_scaling": {"rope_type": "default"})", R"("rope_scaling": {})"}) {
    EXPECT_EQ(llama_with_rope(plain).rope.scaling, RopeScaling::kNone) << plain;
    EXPECT_EQ(llama_with_rope(plain).rope.theta, 10000) << plain;
  }
}

TEST(HuggingFace, RotaryEmbeddingsThatCannotBeTrainedAreKnownByName) {
  for (const auto& [keys, name] :
       {std::pair{R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32})", "yarn"},
        {R"("rope_scaling": {"type": "dynamic", "factor": 2.0})", "dynamic"},
        {R"("rope_scaling": {"rope_type": "longrope", "short_factor": [1], "long_factor": [1]})", "longrope"},
        {R"("rope_parameters": {"full_attention": {"rope_theta": 1e6}})", "a kind for each kind of layer"},
        {R"("rope_theta": 1e4, "partial_rotary_factor": 0.5)", "partial_rotary_factor"}}) {
    const Model model = llama_with_rope(keys);
    EXPECT_EQ(model.rope.scaling, RopeScaling::kOther) << keys;
    EXPECT_EQ(model.rope.other_scaling, name) << keys;
    EXPECT_EQ(parse_model(to_json(model), "x").rope.other_scaling, name) << keys;
  }
}

TEST(HuggingFace, TheNormEpsilonIsTheFilesOrItsFamilys) {
  EXPECT_EQ(parse_model(kQwen, "x").norm_epsilon, 1e-6);
  EXPECT_EQ(parse_model(kMistral, "x").norm_epsilon, 1e-5);
  EXPECT_EQ(parse_model(with(kMistral, "\"rms_norm_eps\": 1e-05, ", ""), "x").norm_epsilon, 1e-6);
  EXPECT_EQ(parse_model(kGpt2, "x").norm_epsilon, 1e-5);
}

TEST(HuggingFace, WrongSizesAndUnknownArchitecturesAreErrors) {
  struct Case {
    const char* config;
    const char* from;
    const char* to;
    const char* message;
  };
  const std::vector<Case> cases = {
      {kLlama3, "LlamaForCausalLM", "MixtralForCausalLM", "\"MixtralForCausalLM\" is not supported; LlamaForCausalLM"},
      {kLlama3, "LlamaForCausalLM", "BertForMaskedLM", "and GPT2LMHeadModel are"},
      {kLlama3, "[\"LlamaForCausalLM\"]", "[]", "\"\" is not supported"},
      {kLlama3, "[\"LlamaForCausalLM\"]", "\"LlamaForCausalLM\"", "$.architectures: found"},
      {kLlama3, "\"hidden_size\": 2048,", "", "$.hidden_size: is missing"},
      {kLlama3, "\"intermediate_size\": 8192,", "", "$.intermediate_size: is missing"},
      {kLlama3, "\"hidden_size\": 2048", "\"hidden_size\": \"2048\"", "$.hidden_size: found \"2048\", want"},
      {kLlama3, "\"num_hidden_layers\": 16", "\"num_hidden_layers\": 0", "$.num_hidden_layers: found 0, want"},
      {kLlama3, "\"num_hidden_layers\": 16", "\"num_hidden_layers\": 16.5", "found 16.5, want a whole number"},
      {kLlama3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5", "num_kv_heads 5 does not divide"},
      {kLlama3, "\"mlp_bias\": false", "\"mlp_bias\": true", "$.mlp_bias: is true and its counterpart is not"},
      {kLlama3, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"",
       "$.hidden_act: found \"gelu\", want one of silu"},
      {kLlama3, "\"factor\": 32.0", "\"factor\": 0.5", "$.rope_scaling.factor: found 0.5, want"},
      {kLlama3, "\"low_freq_factor\": 1.0,", "", "$.rope_scaling.low_freq_factor: is missing"},
      {kLlama3, "\"high_freq_factor\": 4.0", "\"high_freq_factor\": 1", "want more than low_freq_factor"},
      {kLlama3, "\"rope_type\": \"llama3\"", "\"rope_type\": \"\"", "$.rope_scaling.rope_type: found \"\""},
      {kLlama3, "\"rope_theta\": 500000.0", "\"rope_theta\": \"big\"", "$.rope_theta: found \"big\", want a number"},
      {kLlama3, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1", "$.rms_norm_eps: found -1, want"},
      {kMistral, "\"hidden_size\": 4096", "\"hidden_size\": 4100", "num_attention_heads 32 does not divide 4100"},
      {kGpt2, "\"n_embd\": 768", "\"n_embd\": 770", "n_head 12 does not divide 770"},
      {kGpt2, "\"gelu_new\"", "\"relu\"", "$.activation_function: found \"relu\""},
      {kGpt2, "\"vocab_size\": 50257", "\"vocab_size\": 1e400", "number overflow"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(error_of([&] { parse_model(with(c.config, c.from, c.to), "x/config.json"); }), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace layline::spec::test
