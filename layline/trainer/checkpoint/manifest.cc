#include "layline/trainer/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "layline/base/error.h"
#include "layline/trainer/checkpoint/coverage.h"
#include "layline/trainer/checkpoint/hashes.h"

namespace layline::trainer::checkpoint {
namespace {

using base::InputError;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "layline-checkpoint";
constexpr int64_t kVersion = 1;
constexpr std::string_view kHashKey = ",\n\"xxh3\": \"";
constexpr std::string_view kTextEnd = "\"\n}\n";
constexpr size_t kHashDigits = 16;

ordered_json json_of(const SavedSlice& slice, int64_t num_kinds) {
  ordered_json begin = ordered_json::array();
  for (int64_t kind = 0; kind < num_kinds; ++kind) begin.push_back(slice.begin_bytes[static_cast<size_t>(kind)]);
  const Box& box = slice.box;
  return {{"parameter", slice.parameter},
          {"offset", {box.first_row, box.first_column}},
          {"size", {box.num_rows, box.num_columns}},
          {"begin_bytes", begin}};
}

ordered_json json_of(const SavedFile& file, int64_t num_kinds) {
  ordered_json slices = ordered_json::array();
  for (const SavedSlice& slice : file.slices) slices.push_back(json_of(slice, num_kinds));
  return {{"name", file.name},
          {"size_bytes", file.size_bytes},
          {"header_bytes", file.header_bytes},
          {"header_xxh3", hash_text(file.header_hash)},
          {"hashes_begin_bytes", file.hashes_begin_bytes},
          {"num_hashes", file.num_hashes},
          {"hashes_xxh3", hash_text(file.hashes_hash)},
          {"slices", slices}};
}

uint64_t parse_hash(const ordered_json& value) { return std::stoull(value.get<std::string>(), nullptr, 16); }

SavedSlice slice_of(const ordered_json& value) {
  SavedSlice slice;
  value.at("parameter").get_to(slice.parameter);
  const ordered_json &offset = value.at("offset"), &size = value.at("size"), &begin = value.at("begin_bytes");
  slice.box = {offset.at(0).get<int64_t>(), offset.at(1).get<int64_t>(), size.at(0).get<int64_t>(),
               size.at(1).get<int64_t>()};
  for (size_t kind = 0; kind < std::min(begin.size(), slice.begin_bytes.size()); ++kind) {
    begin.at(kind).get_to(slice.begin_bytes[kind]);
  }
  return slice;
}

SavedFile file_of(const ordered_json& value) {
  SavedFile file;
  value.at("name").get_to(file.name);
  value.at("size_bytes").get_to(file.size_bytes);
  value.at("header_bytes").get_to(file.header_bytes);
  value.at("hashes_begin_bytes").get_to(file.hashes_begin_bytes);
  value.at("num_hashes").get_to(file.num_hashes);
  file.header_hash = parse_hash(value.at("header_xxh3"));
  file.hashes_hash = parse_hash(value.at("hashes_xxh3"));
  for (const ordered_json& slice : value.at("slices")) file.slices.push_back(slice_of(slice));
  return file;
}

Manifest manifest_of(const ordered_json& value) {
  Manifest manifest;
  value.at("step").get_to(manifest.step);
  value.at("tokens").get_to(manifest.tokens);
  value.at("data_position").at("next_sample").get_to(manifest.next_sample);
  value.at("random_state").at("seed").get_to(manifest.seed);
  value.at("layout").get_to(manifest.layout);
  manifest.run = value.at("run").dump(2);
  const auto dtype = value.at("dtype").get<std::string>();
  if (dtype != "F32" && dtype != "F64") throw InputError(fmt::format("has the dtype \"{}\"; want F32 or F64", dtype));
  manifest.type = dtype == "F64" ? formats::TensorType::kF64 : formats::TensorType::kF32;
  manifest.has_moments = value.at("kinds").size() == kNumKinds;
  for (const ordered_json& parameter : value.at("parameters")) {
    manifest.parameters.push_back(
        {parameter.at("name").get<std::string>(), parameter.at("shape").get<std::vector<int64_t>>()});
  }
  for (const ordered_json& file : value.at("files")) manifest.files.push_back(file_of(file));
  return manifest;
}

// Runs `read` and says what the JSON library finds with the place.
template <typename Read>
auto with_place(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw InputError(path, fmt::format("is no manifest of a checkpoint: {}", error.what()));
  } catch (const std::logic_error& error) {
    throw InputError(path, fmt::format("is no manifest of a checkpoint: {}", error.what()));
  } catch (const InputError& error) {
    throw InputError(path, error.what());
  }
}

// The text without its hash, which must be right.
std::string_view check_hash(std::string_view text, const std::string& path) {
  const size_t end_bytes = kHashKey.size() + kHashDigits + kTextEnd.size();
  const bool has_hash =
      text.size() > end_bytes && text.ends_with(kTextEnd) && text.substr(text.size() - end_bytes).starts_with(kHashKey);
  if (!has_hash) {
    throw InputError(
        path, fmt::format("is damaged: {} bytes that do not end with their hash; was it cut short?", text.size()));
  }
  const std::string_view content = text.substr(0, text.size() - end_bytes);
  const std::string_view found = text.substr(content.size() + kHashKey.size(), kHashDigits);
  const std::string wanted = hash_text(hash(content));
  if (found != wanted) {
    throw InputError(path, fmt::format("is damaged: its bytes have the hash {}, it says {}", wanted, found));
  }
  return content;
}

void check_ranges(const Manifest& manifest) {
  std::set<std::string> names;
  for (const SavedFile& file : manifest.files) {
    const bool is_name = !file.name.empty() && file.name.find('/') == std::string::npos && file.name != "..";
    if (!is_name) throw InputError(fmt::format("names a file \"{}\", which is not in its folder", file.name));
    if (!names.insert(file.name).second) throw InputError(fmt::format("names file {} twice", file.name));
    const bool is_inside = file.header_bytes >= 0 && file.num_hashes >= 0 &&
                           file.hashes_begin_bytes >= file.header_bytes &&
                           file.num_hashes <= (file.size_bytes - file.hashes_begin_bytes) / int64_t{sizeof(uint64_t)};
    if (!is_inside) throw InputError(fmt::format("file {}: its parts lie outside of it", file.name));
  }
  if (manifest.step < 0 || manifest.next_sample < 0) throw InputError("has a step or sample below 0");
}

}  // namespace

int64_t Manifest::size_bytes() const {
  int64_t sum = 0;
  for (const SavedFile& file : files) sum += file.size_bytes;
  return sum;
}

std::string to_json(const Manifest& manifest) {
  ordered_json parameters = ordered_json::array(), files = ordered_json::array(), kinds = ordered_json::array();
  for (const SavedParameter& parameter : manifest.parameters) {
    parameters.push_back({{"name", parameter.name}, {"shape", parameter.shape}});
  }
  for (const SavedFile& file : manifest.files) files.push_back(json_of(file, manifest.num_kinds()));
  for (int64_t kind = 0; kind < manifest.num_kinds(); ++kind) kinds.push_back(kKindNames[static_cast<size_t>(kind)]);
  const ordered_json json = {{"format", kFormat},
                             {"schema_version", kVersion},
                             {"step", manifest.step},
                             {"tokens", manifest.tokens},
                             {"data_position", {{"next_sample", manifest.next_sample}}},
                             {"random_state", {{"seed", manifest.seed}}},
                             {"layout", manifest.layout},
                             {"dtype", formats::name_of(manifest.type)},
                             {"kinds", kinds},
                             {"run", ordered_json::parse(manifest.run)},
                             {"parameters", parameters},
                             {"files", files}};
  std::string text = json.dump(1, ' ', false, ordered_json::error_handler_t::replace);
  text.resize(text.size() - 2);  // without the end, "\n}"
  const std::string found = hash_text(hash(text));
  return text.append(kHashKey).append(found).append(kTextEnd);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const std::string_view content = check_hash(text, path);
  return with_place(path, [content] {
    const ordered_json json = ordered_json::parse(std::string(content) + "\n}");
    if (json.at("format") != kFormat || json.at("schema_version") != kVersion) {
      throw InputError(fmt::format("is of another format or version; want {} {}", kFormat, kVersion));
    }
    Manifest manifest = manifest_of(json);
    check_ranges(manifest);
    check_coverage(manifest);
    return manifest;
  });
}

std::string to_json(const SavedFile& file) { return json_of(file, kNumKinds).dump(); }

SavedFile parse_saved_file(std::string_view text, const std::string& path) {
  return with_place(path, [text] { return file_of(ordered_json::parse(text)); });
}

}  // namespace layline::trainer::checkpoint
