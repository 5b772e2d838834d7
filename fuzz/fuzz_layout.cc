// Layout texts: any text parses or is an InputError, and what parses has a canonical text that means the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"

namespace {

namespace layout = layline::layout;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_layout(std::string_view text) {
  const layout::Layout parsed = layout::parse_layout(text, {.num_gpus = 64});
  const std::string canonical = layout::to_text(parsed);
  require(layout::parse_layout(canonical) == parsed);
  require(layout::to_text(layout::parse_layout(canonical)) == canonical);
}

void check_constraints(std::string_view text) {
  const layout::LayoutConstraints parsed = layout::parse_constraints(text);
  require(layout::parse_constraints(layout::to_text(parsed)) == parsed);
}

template <typename Check>
void run_check(Check check, std::string_view text) {
  try {
    check(text);
  } catch (const layline::base::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  run_check(check_layout, text);
  run_check(check_constraints, text);
  return 0;
}
