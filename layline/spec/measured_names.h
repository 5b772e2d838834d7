// What the tables of Measurements are called: cost reads them, machine says how they are measured.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "layline/spec/types.h"

namespace layline::spec::measured {

// For each precision, "<name>.bf16". Sizes: tokens, inputs, outputs of a linear layer.
inline constexpr std::string_view kProductForward = "product_forward";
inline constexpr std::string_view kProductInput = "product_input_gradient";
inline constexpr std::string_view kProductWeight = "product_weight_gradient";  // added to main gradients
// Heads of all sequences, tokens of a sequence.
inline constexpr double kHeadSize = 64;  // of attention
inline constexpr std::string_view kAttentionForward = "attention_forward";
inline constexpr std::string_view kAttentionBackward = "attention_backward";
inline constexpr std::string_view kUnfusedForward = "unfused_attention_forward";
inline constexpr std::string_view kUnfusedBackward = "unfused_attention_backward";
// Elements.
inline constexpr std::string_view kNorm = "norm";
inline constexpr std::string_view kNormBackward = "norm_backward";
inline constexpr std::string_view kUnfusedNorm = "unfused_norm";
inline constexpr std::string_view kUnfusedNormBackward = "unfused_norm_backward";
inline constexpr std::string_view kSwiglu = "swiglu";  // of its output
inline constexpr std::string_view kSwigluBackward = "swiglu_backward";
inline constexpr std::string_view kRope = "rope";
inline constexpr std::string_view kAdd = "add";
inline constexpr std::string_view kCopy = "copy";  // between layouts
inline constexpr std::string_view kReadRows = "read_rows";
inline constexpr std::string_view kAddToRows = "add_to_rows";
inline constexpr std::string_view kCrossEntropy = "cross_entropy";
inline constexpr std::string_view kAdamw = "adamw";  // parameters
inline constexpr std::string_view kSumOfSquares = "sum_of_squares";
inline constexpr std::string_view kZero = "zero";
// For each size of a group of ranks, "<name>.2": bytes of the whole tensor, of a message.
inline constexpr std::string_view kAllReduce = "all_reduce";
inline constexpr std::string_view kReduceScatter = "reduce_scatter";
inline constexpr std::string_view kAllGather = "all_gather";
inline constexpr std::string_view kSend = "send";

// Layers run as the trainer runs them, for each precision: hidden size, tokens.
inline constexpr std::string_view kLayerForward = "layer_forward";
inline constexpr std::string_view kLayerBackward = "layer_backward";

// Layers that a tensor-parallel group shares, for each size of a group; the same with sequence parallelism.
inline constexpr std::string_view kSplitForward = "split_layer_forward";
inline constexpr std::string_view kSplitBackward = "split_layer_backward";
inline constexpr std::string_view kSequenceForward = "sequence_layer_forward";
inline constexpr std::string_view kSequenceBackward = "sequence_layer_backward";

// What such a layer took against the sum of its kernels, at the same sizes: factors, not seconds.
inline constexpr std::string_view kForwardFactor = "layer_forward_factor";
inline constexpr std::string_view kBackwardFactor = "layer_backward_factor";
// Of layers that are shared, against kernels with that factor and collectives.
inline constexpr std::string_view kSplitForwardFactor = "split_layer_forward_factor";
inline constexpr std::string_view kSplitBackwardFactor = "split_layer_backward_factor";
inline constexpr std::string_view kSequenceForwardFactor = "sequence_layer_forward_factor";
inline constexpr std::string_view kSequenceBackwardFactor = "sequence_layer_backward_factor";

inline std::string name(std::string_view what, Precision precision) {
  return fmt::format("{}.{}", what, name_of(precision));
}
inline std::string name(std::string_view what, Precision precision, int64_t group_size) {
  return fmt::format("{}.{}.{}", what, name_of(precision), group_size);
}

}  // namespace layline::spec::measured
