#include "layline/export/framework.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"

namespace layline::exporting {
namespace {

struct About {
  std::string_view title, version, engine;
};

constexpr std::array<About, kFrameworkNames.size()> kAbout = {
    {{"Megatron-LM", "core_v0.14.0", "megatron-core"},
     {"NeMo", "2.4.0", "megatron-core"},
     {"torchtitan", "0.2.0", "torchtitan"},
     {"nanotron", "2411b02 (April 2026)", "nanotron"},
     {"Megatron-DeepSpeed", "4efb479 with DeepSpeed 0.17.6", "megatron-deepspeed"},
     {"Layline", "0.1.0", "layline"}}};

const About& about(Framework framework) { return kAbout[static_cast<size_t>(framework)]; }

}  // namespace

std::string_view title_of(Framework framework) { return about(framework).title; }

std::string_view version_of(Framework framework) { return about(framework).version; }

std::string engine_of(Framework framework) { return std::string(about(framework).engine); }

Framework framework_named(std::string_view name, std::string_view where) {
  const auto found = std::find(kFrameworkNames.begin(), kFrameworkNames.end(), name);
  if (found == kFrameworkNames.end()) {
    throw base::InputError(
        where, base::unknown_name_message("framework", name, {kFrameworkNames.begin(), kFrameworkNames.end()}));
  }
  return static_cast<Framework>(found - kFrameworkNames.begin());
}

void refuse(Framework framework, std::string_view what, std::string_view reason) {
  throw base::InputError(title_of(framework), fmt::format("{}: {}", what, reason));
}

}  // namespace layline::exporting
