// The small vocabulary that specs, layouts and engines share.
#pragma once

#include <array>
#include <string_view>

namespace layline::spec {

enum class Precision { kBf16, kFp16, kFp8, kFp32 };
enum class AttentionKernel { kFlash2, kFlash1, kFusedSoftmax, kUnfused };
enum class NormKernel { kFused, kUnfused };
enum class Checkpointing { kNone, kSelective, kFull };
enum class ScheduleKind { kOneFOneB, kInterleaved, kGpipe, kZeroBubble };
enum class SplitKind { kEven, kUniform, kBalanced, kThreshold, kExplicit };

// Texts as they stand in layout texts and spec files ("flash2", "1f1b", …), index = enumerator.
inline constexpr std::array<std::string_view, 4> kPrecisionNames = {"bf16", "fp16", "fp8", "fp32"};
inline constexpr std::array<std::string_view, 4> kAttentionNames = {"flash2", "flash1", "fused-softmax", "unfused"};
inline constexpr std::array<std::string_view, 2> kNormNames = {"fused", "unfused"};
inline constexpr std::array<std::string_view, 3> kCheckpointingNames = {"none", "selective", "full"};
inline constexpr std::array<std::string_view, 4> kScheduleNames = {"1f1b", "interleaved", "gpipe", "zb"};
inline constexpr std::array<std::string_view, 5> kSplitNames = {"even", "uniform", "balanced", "threshold", "explicit"};

inline std::string_view name_of(Precision v) { return kPrecisionNames[static_cast<size_t>(v)]; }
inline std::string_view name_of(AttentionKernel v) { return kAttentionNames[static_cast<size_t>(v)]; }
inline std::string_view name_of(NormKernel v) { return kNormNames[static_cast<size_t>(v)]; }
inline std::string_view name_of(Checkpointing v) { return kCheckpointingNames[static_cast<size_t>(v)]; }
inline std::string_view name_of(ScheduleKind v) { return kScheduleNames[static_cast<size_t>(v)]; }
inline std::string_view name_of(SplitKind v) { return kSplitNames[static_cast<size_t>(v)]; }

}  // namespace layline::spec
