#include "layline/trainer/formats/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "layline/base/error.h"
#include "layline/trainer/formats/load_value.h"
#include "layline/trainer/formats/strict_json.h"

namespace layline::trainer::formats {

using base::InputError;
using nlohmann::json;

namespace {

struct TypeInfo {
  std::string_view name;
  int64_t num_bytes;
};

// Index = enumerator.
constexpr std::array<TypeInfo, 15> kTypes = {{{"BOOL", 1},
                                              {"U8", 1},
                                              {"I8", 1},
                                              {"F8_E4M3", 1},
                                              {"F8_E5M2", 1},
                                              {"I16", 2},
                                              {"U16", 2},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I32", 4},
                                              {"U32", 4},
                                              {"F32", 4},
                                              {"I64", 8},
                                              {"U64", 8},
                                              {"F64", 8}}};

constexpr int64_t kLengthBytes = 8;

const TypeInfo& info(TensorType type) { return kTypes.at(static_cast<size_t>(type)); }

// Bytes of a tensor; nothing when they exceed an int64.
std::optional<int64_t> size_bytes(TensorType type, const std::vector<int64_t>& shape) {
  int64_t size = num_bytes(type);
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(size, length, &size)) return std::nullopt;
  }
  return size;
}

// One entry of the header, with messages that name it.
class EntryParser {
 public:
  // data_bytes: of all tensors, from the header's end to the file's.
  EntryParser(const std::string& path, const std::string& name, int64_t header_end, int64_t data_bytes)
      : path_(path), name_(shown(name)), header_end_(header_end), data_bytes_(data_bytes) {}

  TensorEntry parse(const json& value) const {
    if (!value.is_object()) fail(fmt::format("found {}, want an object", shown(value)));
    for (const auto& [key, unused] : value.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail(fmt::format("unknown key {}; allowed are dtype, shape and data_offsets", shown(key)));
      }
    }
    TensorEntry entry;
    entry.type = type(member(value, "dtype"));
    entry.shape = wholes(member(value, "shape"), "shape");
    place(wholes(member(value, "data_offsets"), "data_offsets"), entry);
    return entry;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(path_, fmt::format("tensor {}: {}", name_, what));
  }

  const json& member(const json& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end()) fail(fmt::format("lacks {}", key));
    return *found;
  }

  TensorType type(const json& value) const {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < kTypes.size(); ++i) {
      if (value.is_string() && value.get_ref<const std::string&>() == kTypes[i].name) return static_cast<TensorType>(i);
      names.push_back(kTypes[i].name);
    }
    fail(fmt::format("dtype {}; allowed are {}", shown(value), fmt::join(names, ", ")));
  }

  std::vector<int64_t> wholes(const json& value, const char* key) const {
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (!value.is_array()) fail(fmt::format("{}: found {}, want a list of whole numbers", key, shown(value)));
    std::vector<int64_t> wholes;
    for (const json& item : value) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > kMax) {
        fail(fmt::format("{}: found {}, want whole numbers from 0 to {}", key, shown(value), kMax));
      }
      wholes.push_back(item.get<int64_t>());
    }
    return wholes;
  }

  void place(const std::vector<int64_t>& offsets, TensorEntry& entry) const {
    if (offsets.size() != 2) fail(fmt::format("data_offsets has {} numbers, want 2", offsets.size()));
    if (offsets[0] > offsets[1] || offsets[1] > data_bytes_) {
      fail(fmt::format("data_offsets are {} and {}; want a range within the {} bytes that follow the header",
                       offsets[0], offsets[1], data_bytes_));
    }
    const std::optional<int64_t> wanted = size_bytes(entry.type, entry.shape);
    if (!wanted || *wanted != offsets[1] - offsets[0]) {
      fail(fmt::format("data_offsets give it {} bytes; {} of shape [{}] takes {}", offsets[1] - offsets[0],
                       name_of(entry.type), fmt::join(entry.shape, ", "),
                       wanted ? fmt::format("{}", *wanted) : "more than a file can hold"));
    }
    entry.begin_bytes = header_end_ + offsets[0];
    entry.size_bytes = *wanted;
  }

  const std::string& path_;
  std::string name_;
  int64_t header_end_, data_bytes_;
};

// The JSON text, its length checked.
std::string_view header_text(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < static_cast<size_t>(kLengthBytes)) {
    throw InputError(
        path, fmt::format("has {} bytes; a safetensors file begins with a length of {}", file.size(), kLengthBytes));
  }
  const auto length = load_value<uint64_t>(file.data());
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    throw InputError(
        path, fmt::format("byte 0: a header of {} bytes; at most {} are allowed: is this a safetensors file?", length,
                          kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - static_cast<size_t>(kLengthBytes)) {
    throw InputError(path, fmt::format("byte 0: a header of {} bytes, but only {} follow: the file was cut short",
                                       length, file.size() - static_cast<size_t>(kLengthBytes)));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (text.empty() || text.front() != '{') {
    throw InputError(path, "byte 8: the header does not begin with {: is this a safetensors file?");
  }
  return text;
}

std::map<std::string, std::string> parse_metadata(const json& value, const std::string& path) {
  std::map<std::string, std::string> metadata;
  const bool is_map =
      value.is_object() && std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_string(); });
  if (!is_map) {
    throw InputError(path, fmt::format("{}: found {}, want an object of texts", kMetadataKey, shown(value)));
  }
  for (const auto& [key, text] : value.items()) metadata[key] = text.get<std::string>();
  return metadata;
}

// From the header's end to the file's, without holes or overlaps.
void check_contiguous(const std::map<std::string, TensorEntry>& tensors, int64_t header_end, int64_t file_bytes,
                      const std::string& path) {
  std::vector<std::tuple<int64_t, int64_t, const std::string*>> ranges;
  for (const auto& [name, entry] : tensors) {
    ranges.emplace_back(entry.begin_bytes, entry.begin_bytes + entry.size_bytes, &name);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t end = header_end;
  for (const auto& [first, last, name] : ranges) {
    if (first != end) {
      throw InputError(path, fmt::format("tensor {}: begins at {}; want {}, where the one before it ends", shown(*name),
                                         first - header_end, end - header_end));
    }
    end = last;
  }
  if (end != file_bytes) {
    throw InputError(path,
                     fmt::format("has {} bytes after the last tensor, which ends at byte {}", file_bytes - end, end));
  }
}

}  // namespace

std::string_view name_of(TensorType type) { return info(type).name; }

int64_t num_bytes(TensorType type) { return info(type).num_bytes; }

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text = header_text(file, path);
  const json value = parse_strict_json(text, path);
  const int64_t header_end = kLengthBytes + static_cast<int64_t>(text.size());
  const auto file_bytes = static_cast<int64_t>(file.size());

  SafetensorsHeader header;
  for (const auto& [name, entry] : value.items()) {
    if (name == kMetadataKey) {
      header.metadata = parse_metadata(entry, path);
    } else {
      header.tensors[name] = EntryParser(path, name, header_end, file_bytes - header_end).parse(entry);
    }
  }
  check_contiguous(header.tensors, header_end, file_bytes, path);
  return header;
}

WrittenHeader write_safetensors_header(const std::map<std::string, TensorShape>& tensors,
                                       const std::map<std::string, std::string>& metadata) {
  WrittenHeader written;
  for (const auto& [name, tensor] : tensors) written.order.push_back(name);
  std::sort(written.order.begin(), written.order.end(), [&tensors](const auto& a, const auto& b) {
    const int64_t bytes_a = num_bytes(tensors.at(a).type), bytes_b = num_bytes(tensors.at(b).type);
    return bytes_a != bytes_b ? bytes_a > bytes_b : a < b;
  });

  json header = json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  int64_t offset = 0;
  for (const std::string& name : written.order) {
    const TensorShape& tensor = tensors.at(name);
    const int64_t end = offset + size_bytes(tensor.type, tensor.shape).value();
    header[name] = {{"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  written.bytes.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  written.bytes += text;
  return written;
}

}  // namespace layline::trainer::formats
