// The training frameworks that layouts are exported to and imported from. The namespace cannot be called like the
// folder: export is a word of the language.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace layline::exporting {

enum class Framework { kMegatron, kNemo, kTorchtitan, kNanotron, kDeepspeed, kLayline };

inline constexpr std::array<std::string_view, 6> kFrameworkNames = {"megatron", "nemo",      "torchtitan",
                                                                    "nanotron", "deepspeed", "layline"};

inline std::string_view name_of(Framework framework) { return kFrameworkNames[static_cast<size_t>(framework)]; }

// "Megatron-LM", and the version that options are named after.
std::string_view title_of(Framework framework);
std::string_view version_of(Framework framework);

// The engine spec that behaves like it.
std::string engine_of(Framework framework);

// Throws base::InputError with the nearest name.
Framework framework_named(std::string_view name, std::string_view where);

// What a framework cannot run: throws base::InputError "NAME: WHAT: REASON".
[[noreturn]] void refuse(Framework framework, std::string_view what, std::string_view reason);

}  // namespace layline::exporting
