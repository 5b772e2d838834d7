// What a checkpoint is: the file manifest.json of its folder, renamed into place when everything else is on disk. A
// folder without one was never finished.
//
// It says of every weight its global name and shape, and of every file which rectangles of which weights it has and
// where; so ranks of any layout find what they need without knowing by which layout it was written. It ends with a hash
// of itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layline/trainer/checkpoint/box.h"
#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::checkpoint {

inline constexpr std::string_view kManifestName = "manifest.json";

// What is kept of a weight: its value, fp32 in bf16 runs too, and AdamW's moments.
enum class Kind { kWeight, kExpAvg, kExpAvgSq };
inline constexpr int64_t kNumKinds = 3;
inline constexpr std::array<std::string_view, kNumKinds> kKindNames = {"weight", "exp_avg", "exp_avg_sq"};

struct SavedParameter {
  std::string name;  // as Hugging Face has it
  std::vector<int64_t> shape;
  bool operator==(const SavedParameter&) const = default;
};

// A rectangle of a weight in a file, row-major.
struct SavedSlice {
  int64_t parameter = 0;  // index in Manifest::parameters
  Box box;
  std::array<int64_t, kNumKinds> begin_bytes{};  // in the file, by kind
  bool operator==(const SavedSlice&) const = default;
};

struct SavedFile {
  std::string name;  // within the folder
  int64_t size_bytes = 0;
  int64_t header_bytes = 0;
  int64_t hashes_begin_bytes = 0, num_hashes = 0;  // hashes.h
  uint64_t header_hash = 0, hashes_hash = 0;
  std::vector<SavedSlice> slices;
  bool operator==(const SavedFile&) const = default;
};

struct Manifest {
  int64_t step = 0;                                      // that was done last
  int64_t tokens = 0;                                    // trained on so far
  int64_t next_sample = 0;                               // global index of the first sample that was not read
  int64_t seed = 1;                                      // of weights and data order: there is no other random state
  std::string layout;                                    // that it was written by
  std::string run;                                       // RUN.json, every key
  formats::TensorType type = formats::TensorType::kF32;  // of everything
  bool has_moments = true;
  std::vector<SavedParameter> parameters;
  std::vector<SavedFile> files;

  int64_t num_kinds() const { return has_moments ? kNumKinds : 1; }
  int64_t size_bytes() const;  // of all files
  bool operator==(const Manifest&) const = default;
};

std::string to_json(const Manifest& manifest);

// Throws base::InputError naming `path`: text that is no manifest, or that was cut or changed since it was written;
// rectangles that do not cover every weight exactly or lie outside of their file.
Manifest parse_manifest(std::string_view text, const std::string& path);

// A file's entry, as the rank that wrote the file hands it to the one that writes the manifest.
std::string to_json(const SavedFile& file);
SavedFile parse_saved_file(std::string_view text, const std::string& path);

}  // namespace layline::trainer::checkpoint
