// A decoder-only transformer as the planner sees it: sizes, and which parts it has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace layline::spec {

enum class Mlp { kSwiglu, kGelu, kSquaredRelu };  // SwiGLU has three matrices, the others two.
enum class Norm { kRmsNorm, kLayerNorm };
enum class Position { kRope, kLearned, kAlibi };

// How rotary frequencies are changed for longer contexts: not, all divided by factor ("linear"), or low ones only
// ("llama3"), as in transformers' modeling_rope_utils. kOther is known by its name alone: its models can be planned
// with, not trained.
enum class RopeScaling { kNone, kLinear, kLlama3, kOther };

// Rotary position embedding (Su et al. 2021): dims turn with frequency theta^(-2i/d).
struct Rope {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  std::string other_scaling;   // "yarn", when scaling is kOther
  double factor = 1;           // of linear and llama3
  double low_freq_factor = 1;  // this and what follows: of llama3
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
};

struct Model {
  std::string name;                  // "llama-13b"
  std::string title;                 // "Llama 13B"
  std::vector<std::string> aliases;  // other names, as on the Hugging Face Hub: "meta-llama/Llama-2-13b-hf"
  int64_t num_layers = 0;            // L
  int64_t hidden = 0;                // h
  int64_t num_heads = 0;             // n
  int64_t num_kv_heads = 0;          // k
  int64_t head_size = 0;             // d; n·d need not equal h
  int64_t ffn_hidden = 0;            // f, width of one feed-forward matrix
  int64_t vocab = 0;                 // V, before padding to tp
  int64_t max_sequence_length = 0;   // rows of a learned position embedding; 0 when there is none
  Mlp mlp = Mlp::kSwiglu;
  Norm norm = Norm::kRmsNorm;
  Position position = Position::kRope;
  double norm_epsilon = 1e-5;
  Rope rope;                         // when position is kRope
  bool tied_embeddings = false;      // head shares the embedding's weight
  bool qkv_bias = false;             // biases on Q, K, V (Qwen2, GPT-2)
  bool linear_bias = false;          // biases on the other linears (GPT-2)
  int64_t num_experts = 0;           // 0: dense. Room for mixtures of experts; the planner refuses them today.
  int64_t published_parameters = 0;  // from the model's paper or card; 0 when not published
  std::string source;                // where the sizes come from

  int64_t num_mlp_matrices() const { return mlp == Mlp::kSwiglu ? 3 : 2; }
  int64_t attention_width() const { return num_heads * head_size; }  // n·d
  int64_t kv_width() const { return num_kv_heads * head_size; }      // k·d

  // Parameter counts, in parameters, without padding of the vocabulary.
  int64_t layer_parameters() const;      // one transformer layer
  int64_t embedding_parameters() const;  // token embedding V·h and learned positions
  int64_t head_parameters() const;       // V·h, 0 when tied
  int64_t final_norm_parameters() const;
  int64_t num_parameters() const;  // all, tied weights once

  // Model FLOPs of one token at sequence length s, forward and backward, PaLM's convention (Chowdhery et al. 2022,
  // appendix B): 6N + 12·L·n·d·s, N = num_parameters(). The attention matrix is counted in full, not causal.
  double flops_per_token(int64_t sequence_length) const;
};

// Throws base::InputError when sizes are zero, negative, absurdly large (a matrix of more than 2^40 elements, 2^50
// parameters) or do not divide, and for mixtures of experts. Counts of a model that passes do not overflow.
// `where` prefixes the message.
void check_model(const Model& model, const std::string& where);

}  // namespace layline::spec
