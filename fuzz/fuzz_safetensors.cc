// Safetensors headers: any bytes are tensors that fill the file, written and read back to the same, or an InputError.
// Index files likewise: what parses names files of the folder only.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "layline/base/error.h"
#include "layline/trainer/formats/safetensors_header.h"
#include "layline/trainer/formats/safetensors_index.h"

namespace {

namespace formats = layline::trainer::formats;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_header(std::span<const std::byte> file) {
  const formats::SafetensorsHeader header = formats::parse_safetensors_header(file, "fuzz.safetensors");
  std::map<std::string, formats::TensorShape> shapes;
  int64_t data_bytes = 0;
  for (const auto& [name, entry] : header.tensors) {
    require(entry.begin_bytes >= 8 && entry.size_bytes >= 0);
    require(entry.begin_bytes + entry.size_bytes <= static_cast<int64_t>(file.size()));
    shapes[name] = {.type = entry.type, .shape = entry.shape};
    data_bytes += entry.size_bytes;
  }

  const std::string again = formats::write_safetensors_header(shapes, header.metadata).bytes +
                            std::string(static_cast<size_t>(data_bytes), '\0');
  const auto read_back = formats::parse_safetensors_header(std::as_bytes(std::span(again)), "again.safetensors");
  require(read_back.metadata == header.metadata && read_back.tensors.size() == shapes.size());
  for (const auto& [name, entry] : read_back.tensors) {
    require(entry.type == shapes.at(name).type && entry.shape == shapes.at(name).shape);
    require(entry.begin_bytes % formats::num_bytes(entry.type) == 0);
  }
}

void check_index(std::string_view text) {
  for (const auto& [name, file] : formats::parse_safetensors_index(text, "fuzz.json")) {
    require(!file.empty() && file.find('/') == std::string::npos && file != "..");
  }
}

template <typename Check, typename Input>
void run_check(Check check, Input input) {
  try {
    check(input);
  } catch (const layline::base::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_check(check_header, std::as_bytes(std::span(data, size)));
  run_check(check_index, std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
