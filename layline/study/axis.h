// In what two layouts of one job differ.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "layline/layout/layout.h"

namespace layline::study {

// dp is none: it follows from the number of GPUs and the others.
enum class Axis {
  kTensor,
  kPipeline,
  kContext,
  kExpert,
  kVirtual,
  kMicroBatch,
  kSequenceParallel,
  kSharding,  // ZeRO stage and hsdp
  kCheckpointing,
  kSchedule,
  kSplit,
  kAttention,
  kNorm,
  kCount
};
inline constexpr std::array<std::string_view, static_cast<size_t>(Axis::kCount)> kAxisNames = {
    "tp", "pp", "cp", "ep", "vp", "mb", "sp", "zero", "ckpt", "sched", "split", "attn", "norm"};
inline std::string_view name_of(Axis axis) { return kAxisNames[static_cast<size_t>(axis)]; }

// In the order of the enumerators. Sequence parallelism is no difference where one of the two has tp 1: it changes
// nothing there.
std::vector<Axis> differing_axes(const layout::Layout& a, const layout::Layout& b);

// Whether all differences are among `axes`.
bool differ_only_in(const std::vector<Axis>& axes, const layout::Layout& a, const layout::Layout& b);

// The same text for all layouts of a job that may differ only in `axes`, for grouping; layouts of one group may still
// differ in sequence parallelism, where `axes` has tensor parallelism.
std::string text_without(const std::vector<Axis>& axes, layout::Layout layout);

}  // namespace layline::study
