#include "layline/trainer/formats/open_tokens.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/formats/megatron_tokens.h"
#include "layline/trainer/formats/text_tokens.h"

namespace layline::trainer::formats {
namespace {

namespace fs = std::filesystem;
using base::InputError;

constexpr std::string_view kBin = ".bin", kIdx = ".idx";

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

// ` (did you mean "…"?)`, or nothing.
std::string nearest_in_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(folder.empty() ? fs::path(".") : folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path name = entries->path().filename();
    names.push_back(name.extension() == kBin || name.extension() == kIdx ? name.stem().string() : name.string());
  }
  const std::string nearest = base::nearest_name(fs::path(path).filename().string(), names);
  return nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", (folder / nearest).string());
}

std::unique_ptr<const TokenSource> open_megatron(const std::string& prefix) {
  const bool has_bin = exists(prefix + ".bin"), has_idx = exists(prefix + ".idx");
  if (has_bin && has_idx) return std::make_unique<MegatronTokens>(prefix);
  if (has_bin) throw InputError(prefix + ".bin", fmt::format("lacks its index {}.idx", prefix));
  if (has_idx) throw InputError(prefix + ".idx", fmt::format("lacks its tokens {}.bin", prefix));
  throw InputError(prefix, fmt::format("found neither {0}.bin nor {0}.idx{1}", prefix, nearest_in_folder(prefix)));
}

}  // namespace

std::unique_ptr<const TokenSource> open_tokens(const std::string& path) {
  if (path.empty()) throw InputError("data", "the path is empty; want a text file or the prefix of a .bin and an .idx");
  if (ends_with(path, kBin) || ends_with(path, kIdx)) return open_megatron(path.substr(0, path.size() - kBin.size()));
  if (exists(path) && !is_folder(path)) return std::make_unique<TextTokens>(path);
  if (exists(path + ".bin") || exists(path + ".idx")) return open_megatron(path);
  if (is_folder(path)) throw InputError(path, "is a folder; want a text file or the prefix of a .bin and an .idx");
  throw InputError(
      path, fmt::format("found neither this text file nor {0}.bin and {0}.idx{1}", path, nearest_in_folder(path)));
}

}  // namespace layline::trainer::formats
