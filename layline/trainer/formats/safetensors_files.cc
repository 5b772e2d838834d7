#include "layline/trainer/formats/safetensors_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/trainer/formats/safetensors_index.h"

namespace layline::trainer::formats {

namespace fs = std::filesystem;
using base::InputError;

namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kPickledFile = "pytorch_model.bin";

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string in_folder(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

std::map<std::string, TensorEntry> open_file(SafetensorsFiles& all, const std::string& path) {
  all.files.push_back(std::make_unique<MappedFile>(path));
  return parse_safetensors_header(all.files.back()->bytes(), path).tensors;
}

void open_single(SafetensorsFiles& all, const std::string& path) {
  for (auto& [name, entry] : open_file(all, path)) all.tensors[name] = {std::move(entry), all.files.back().get()};
}

void open_shard(SafetensorsFiles& all, const std::string& index_path, const std::string& shard,
                const std::vector<std::string>& names) {
  const std::string path = in_folder(all.path, shard);
  if (!exists(path)) {
    throw InputError(index_path, fmt::format("tensor \"{}\" is said to be in {}, which is missing", names[0], shard));
  }
  std::map<std::string, TensorEntry> found = open_file(all, path);
  for (const std::string& name : names) {
    const auto entry = found.find(name);
    if (entry == found.end()) {
      throw InputError(index_path, fmt::format("tensor \"{}\" is said to be in {}, which lacks it", name, shard));
    }
    all.tensors[name] = {std::move(entry->second), all.files.back().get()};
  }
}

void open_shards(SafetensorsFiles& all, const std::string& index_path) {
  std::map<std::string, std::vector<std::string>> names_by_shard;
  for (const auto& [name, shard] : parse_safetensors_index(base::read_file(index_path), index_path)) {
    names_by_shard[shard].push_back(name);
  }
  for (const auto& [shard, names] : names_by_shard) open_shard(all, index_path, shard, names);
}

}  // namespace

SafetensorsFiles open_safetensors(const std::string& path) {
  SafetensorsFiles all{.path = path, .files = {}, .tensors = {}};
  std::error_code error;
  const std::string single = in_folder(path, kSingleFile), index = in_folder(path, kIndexFile);
  if (!fs::is_directory(path, error)) {
    open_single(all, path);
  } else if (exists(single)) {
    open_single(all, single);
  } else if (exists(index)) {
    open_shards(all, index);
  } else {
    const bool is_pickled = exists(in_folder(path, kPickledFile));
    throw InputError(path, fmt::format("found neither {} nor {}{}", kSingleFile, kIndexFile,
                                       is_pickled ? fmt::format(" ({} is not read)", kPickledFile) : ""));
  }
  return all;
}

}  // namespace layline::trainer::formats
