#include "layline/trainer/convert/write_checkpoint.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <system_error>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/checkpoint/model_weights.h"
#include "layline/trainer/checkpoint/shard_file.h"

namespace layline::trainer::convert {
namespace {

using checkpoint::Box;
using checkpoint::Kind;
using checkpoint::Manifest;
using checkpoint::ShardSlice;

constexpr int64_t kPieceBytes = int64_t{64} << 20;
constexpr int64_t kMebibyte = 1 << 20;

// Rows of a panel of a weight.
struct Piece {
  int64_t parameter = 0;
  Box box;
};

// Whatever tp is, it divides the number of panels.
std::vector<Piece> pieces_of(const Manifest& manifest, const spec::Model& model) {
  const std::map<std::string, checkpoint::ModelWeight> weights = checkpoint::model_weights(model);
  const int64_t element_bytes = formats::num_bytes(manifest.type);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const Box all = checkpoint::whole(manifest.parameters[i].shape);
    const bool has_panels = weights.at(manifest.parameters[i].name).sharded_dim == 1;
    const int64_t num_panels = has_panels ? std::gcd(model.num_heads, model.ffn_hidden) : 1;
    const int64_t width = all.num_columns / num_panels;
    const int64_t most_rows = std::max<int64_t>(1, kPieceBytes / (width * element_bytes));
    for (int64_t column = 0; column < all.num_columns; column += width) {
      for (int64_t row = 0; row < all.num_rows; row += most_rows) {
        pieces.push_back({static_cast<int64_t>(i), {row, column, std::min(most_rows, all.num_rows - row), width}});
      }
    }
  }
  return pieces;
}

std::vector<std::vector<Piece>> files_of(const Manifest& manifest, const spec::Model& model, int64_t file_bytes) {
  const int64_t bytes = formats::num_bytes(manifest.type) * manifest.num_kinds();
  std::vector<std::vector<Piece>> files(1);
  int64_t size = 0;
  for (const Piece& piece : pieces_of(manifest, model)) {
    const int64_t more = piece.box.size() * bytes;
    if (size > 0 && size + more > file_bytes) {
      files.emplace_back();
      size = 0;
    }
    files.back().push_back(piece);
    size += more;
  }
  return files;
}

// The pieces' contents, read by several threads.
class Contents {
 public:
  Contents(const std::vector<Piece>& pieces, const Manifest& manifest, const WeightSource& source) {
    const int64_t element_bytes = formats::num_bytes(manifest.type);
    const auto num_kinds = static_cast<size_t>(manifest.num_kinds());
    for (const Piece& piece : pieces) {
      ShardSlice& slice = slices_.emplace_back();
      slice.parameter_index = piece.parameter;
      slice.parameter = manifest.parameters[static_cast<size_t>(piece.parameter)];
      slice.box = piece.box;
      size_bytes_ += piece.box.size() * element_bytes * manifest.num_kinds();
    }
    memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(size_bytes_));
    std::vector<std::span<std::byte>> places;
    std::byte* next = memory_.get();
    for (ShardSlice& slice : slices_) {
      for (size_t kind = 0; kind < num_kinds; ++kind) {
        const std::span<std::byte> place(next, static_cast<size_t>(slice.box.size() * element_bytes));
        places.push_back(place);
        slice.contents[kind] = place;
        next += place.size();
      }
    }
    tbb::parallel_for(size_t{0}, places.size(), [&](size_t i) {
      const ShardSlice& slice = slices_[i / num_kinds];
      source.read(static_cast<Kind>(i % num_kinds), slice.parameter.name, slice.box, places[i]);
    });
  }
  const std::vector<ShardSlice>& slices() const { return slices_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::vector<ShardSlice> slices_;
  std::unique_ptr<std::byte[]> memory_;
  int64_t size_bytes_ = 0;
};

void check_is_empty(const std::string& directory) {
  const std::vector<int64_t> steps = checkpoint::committed_steps(directory);
  if (steps.empty()) return;
  throw base::InputError(directory,
                         fmt::format("has a checkpoint of step {} already: choose another folder", steps.front()));
}

}  // namespace

std::string write_checkpoint(const std::string& directory, Manifest manifest, const spec::Model& model,
                             const WeightSource& source, const WriteOptions& options) {
  const checkpoint::FolderLock lock(directory);
  check_is_empty(directory);
  checkpoint::remove_unfinished(directory);
  const std::string folder = checkpoint::step_folder(directory, manifest.step);
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error) throw base::InputError(folder, fmt::format("cannot be made: {}", error.message()));
  const std::vector<std::vector<Piece>> files = files_of(manifest, model, options.file_bytes);
  int64_t num_elements = 0;
  for (const checkpoint::SavedParameter& parameter : manifest.parameters) {
    num_elements += checkpoint::whole(parameter.shape).size();
  }
  const int64_t total_bytes = num_elements * formats::num_bytes(manifest.type) * manifest.num_kinds();
  try {
    base::Progress progress(options.sink, "writing, MiB", total_bytes / kMebibyte);
    for (size_t i = 0; i < files.size(); ++i) {
      const Contents contents(files[i], manifest, source);
      manifest.files.push_back(checkpoint::write_shard(
          folder, fmt::format("shard-{:05}-of-{:05}.safetensors", i, files.size()), manifest.type, contents.slices(),
          {{"format", "layline-checkpoint"}}, options.is_cancelled));
      progress.advance(contents.size_bytes() / kMebibyte);
    }
    checkpoint::commit(folder, manifest);
  } catch (...) {
    checkpoint::remove_step(directory, manifest.step);
    throw;
  }
  return folder;
}

}  // namespace layline::trainer::convert
