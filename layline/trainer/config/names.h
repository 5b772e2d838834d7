// The enumerators of RunConfig as RUN.json writes them, index = enumerator. Private to this folder.
#pragma once

#include <array>
#include <string_view>

namespace layline::trainer::config {

inline constexpr std::array<std::string_view, 3> kPrecisionNames = {"bf16", "fp32", "fp64"};
inline constexpr std::array<std::string_view, 2> kDeviceNames = {"cpu", "cuda"};
inline constexpr std::array<std::string_view, 2> kDataOrderNames = {"shuffled", "sequential"};
inline constexpr std::array<std::string_view, 1> kDecayNames = {"cosine"};
inline constexpr std::array<std::string_view, 2> kOnSaveErrorNames = {"stop", "continue"};

}  // namespace layline::trainer::config
