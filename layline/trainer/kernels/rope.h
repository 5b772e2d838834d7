// Rotary position embedding (Su et al., arXiv:2104.09864) as Hugging Face's Llama does it: dim i of a head is rotated
// with dim i + D/2 ("rotate_half"), by an angle of position · theta^(-2i/D).
//
//   const RopeTable table = make_rope_table(sequence_length, head_size, {.theta = 500000}, at::kBFloat16);
//   rope_(q_BSND, table, false);  …  rope_(dq_BSND, table, true);
//
// Shapes: B micro-batch, S sequence, N heads, D head size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace layline::trainer::kernels {

// Low frequencies are divided by `factor`, high ones kept, those between interpolated ("rope_type": "llama3").
struct Llama3RopeScaling {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
};

struct RopeOptions {
  double theta = 10000;
  std::optional<Llama3RopeScaling> llama3 = std::nullopt;
  std::optional<double> linear_factor = std::nullopt;  // all frequencies are divided by it ("rope_type": "linear")
};

// Row s is position s. A narrowed table starts elsewhere.
struct RopeTable {
  at::Tensor cos_SD2;  // D2 = D / 2
  at::Tensor sin_SD2;
};

// The table for a model that computes in `dtype`: fp64 for fp64, else fp32, with the bits of transformers'
// modeling_rope_utils. head_size is even.
RopeTable make_rope_table(int64_t sequence_length, int64_t head_size, const RopeOptions& options, at::ScalarType dtype);

// Rotates in place; `inverse` rotates back, which is the gradient. D is contiguous, other strides are free, so slices
// of a joint query-key-value projection work. The table has S rows or more. bf16, fp32, fp64; nothing on meta.
void rope_(const at::Tensor& x_BSND, const RopeTable& table, bool inverse);

}  // namespace layline::trainer::kernels
