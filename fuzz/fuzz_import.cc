// Scripts and configurations of every framework: any text is a layout or an InputError. The first byte chooses the
// framework.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layline/base/error.h"
#include "layline/export/import.h"

namespace exporting = layline::exporting;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  exporting::ImportOptions options;
  options.num_gpus = data[0] >= 0x80 ? 64 : 0;
  options.model = data[0] >= 0xc0 ? "llama-tiny" : "";
  try {
    const auto framework = static_cast<exporting::Framework>(data[0] % exporting::kFrameworkNames.size());
    const exporting::Imported imported = exporting::import_layout(text, framework, options);
    const auto& layout = imported.layout;
    if (layout.dp * layout.tp * layout.pp * layout.cp != imported.num_gpus) std::abort();
    if (imported.global_batch % (layout.dp * layout.mb) != 0) std::abort();
  } catch (const layline::base::InputError&) {
  }
  return 0;
}
