// A model's sizes from Megatron's options, with Megatron's defaults for what is not given.

#include <fmt/format.h>

#include "layline/export/command_settings.h"

namespace layline::exporting {
namespace {

using spec::Model;

constexpr int64_t kUsualVocab = 32000;
constexpr int64_t kGpt2Vocab = 50257;
constexpr double kMaxTheta = 1e12;

void read_feed_forward(Settings& options, Model& model) {
  if (options.is_given("swiglu")) {
    model.mlp = spec::Mlp::kSwiglu;
  } else {
    model.mlp = options.is_given("squared-relu") ? spec::Mlp::kSquaredRelu : spec::Mlp::kGelu;
  }
  const int64_t usual = model.mlp == spec::Mlp::kSwiglu ? 4 * model.hidden * 2 / 3 / 64 * 64 : 4 * model.hidden;
  model.ffn_hidden = options.whole_or("ffn-hidden-size", usual, 1, kMaxCount);
  model.linear_bias = !options.is_given("disable-bias-linear");
  model.qkv_bias = options.is_given("add-qkv-bias") || model.linear_bias;
}

void read_attention(Framework framework, Settings& options, Model& model) {
  model.num_heads = options.whole_or("num-attention-heads", 0, 1, kMaxCount);
  if (model.num_heads == 0) options.fail("--num-attention-heads", "is missing");
  if (!options.has("kv-channels") && model.hidden % model.num_heads != 0) {
    options.fail("--num-attention-heads",
                 fmt::format("{} does not divide the hidden size {}", model.num_heads, model.hidden));
  }
  model.head_size = options.whole_or("kv-channels", model.hidden / model.num_heads, 1, kMaxCount);
  model.num_kv_heads = model.num_heads;
  if (framework == Framework::kDeepspeed) {
    model.num_kv_heads = options.whole_or("num-key-value-heads", model.num_heads, 1, kMaxCount);
  } else if (options.is_given("group-query-attention")) {
    model.num_kv_heads = options.whole_or("num-query-groups", 1, 1, kMaxCount);
  }
}

void read_norm_and_position(Framework framework, Settings& options, Model& model) {
  const bool is_deepspeed = framework == Framework::kDeepspeed;
  const std::string norm =
      options.one_of("normalization", "LayerNorm", {"LayerNorm", "RMSNorm", "layernorm", "rmsnorm"});
  model.norm = norm == "RMSNorm" || norm == "rmsnorm" ? spec::Norm::kRmsNorm : spec::Norm::kLayerNorm;
  const std::string epsilon = options.first_of({"norm-epsilon", "layernorm-epsilon"});
  model.norm_epsilon = options.number(epsilon, 0, 1).value_or(1e-5);
  const std::string kind =
      options.one_of("position-embedding-type", "learned_absolute",
                     {"learned_absolute", "rope", "mrope", "yarn", "relative", "none", "alibi", "rotary", "absolute"});
  const bool is_rope = kind == "rope" || kind == "mrope" || kind == "yarn" || kind == "rotary";
  const bool is_old_rope = options.is_given("use-rotary-position-embeddings");
  const int64_t positions = options.whole_or("max-position-embeddings", 0, 1, kMaxCount);
  if (!is_rope && !is_old_rope) {
    model.position = spec::Position::kLearned;
    model.max_sequence_length = positions;
    if (positions == 0) options.fail("--max-position-embeddings", "is missing");
    return;
  }
  const char* theta = is_deepspeed ? "rotary-position-embeddings-theta" : "rotary-base";
  model.rope.theta = options.number(theta, 1, kMaxTheta).value_or(10000);
  if (options.is_given("use-rope-scaling")) {
    model.rope.scaling = spec::RopeScaling::kLlama3;
    model.rope.factor = options.number("rope-scaling-factor", 1, kMaxTheta).value_or(8);
  }
}

// Tokenizers know the vocabulary, scripts seldom do.
void read_vocab(Settings& options, Draft& draft) {
  const std::string tokenizer = options.text_or("tokenizer-type", "");
  const std::optional<int64_t> vocab = options.whole("vocab-size", 1, kMaxCount);
  draft.knows_vocab = vocab.has_value() || tokenizer == "GPT2BPETokenizer";
  const int64_t added = tokenizer == "NullTokenizer" ? 1 : 0;
  draft.model->vocab = vocab ? *vocab + added : tokenizer == "GPT2BPETokenizer" ? kGpt2Vocab : kUsualVocab;
}

}  // namespace

void read_model_options(Framework framework, Settings& options, Draft& draft) {
  if (options.whole_or("num-experts", 1, 1, kMaxCount) > 1) {
    options.fail("--num-experts", "mixtures of experts cannot be priced");
  }
  const std::optional<int64_t> layers = options.whole("num-layers", 1, kMaxCount);
  if (!layers) return;
  draft.model.emplace();
  Model& model = *draft.model;
  model.num_layers = *layers;
  model.hidden = options.whole_or("hidden-size", 0, 1, kMaxCount);
  if (model.hidden == 0) options.fail("--hidden-size", "is missing");
  read_attention(framework, options, model);
  read_feed_forward(options, model);
  read_norm_and_position(framework, options, model);
  model.tied_embeddings = !options.is_given("untie-embeddings-and-output-weights");
  read_vocab(options, draft);
}

}  // namespace layline::exporting
