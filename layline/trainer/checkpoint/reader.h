// The contents of a committed checkpoint: any rectangle of any weight, whichever layout wrote it.
//
//   const CheckpointReader reader("checkpoints/step-0000000040");
//   reader.read(Kind::kExpAvg, "model.norm.weight", box, buffer);
//
// What is read is checked against its hashes first: damage is a base::InputError that names the file, never a number.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::checkpoint {

// Everything const may be called by several threads at once.
class CheckpointReader {
 public:
  // Reads the manifest, and checks that all files are there with their sizes. Throws base::InputError.
  explicit CheckpointReader(std::string folder);
  ~CheckpointReader();

  const Manifest& manifest() const { return manifest_; }
  const std::string& folder() const { return folder_; }
  bool has(const std::string& parameter) const;

  // Fills `out`, row-major, box.size() elements of the manifest's type; zeros for moments that the checkpoint has not.
  // The weight has the box. Throws base::InputError for damage, and when the file cannot be read.
  void read(Kind kind, const std::string& parameter, const Box& box, std::span<std::byte> out) const;

  struct Request {
    Kind kind = Kind::kWeight;
    std::string parameter;
    Box box;
    std::span<std::byte> out;
  };
  // The same for many, in pieces, by several threads.
  void read(const std::vector<Request>& requests) const;

  // Reads everything that file `index` of the manifest holds, and compares its header with the manifest. Throws
  // base::InputError.
  void verify_file(size_t index) const;

  // Taken from the disk so far, headers and hashes too.
  int64_t bytes_read() const { return bytes_read_; }

 private:
  class File;
  struct Place {
    size_t file = 0;
    const SavedSlice* slice = nullptr;
  };
  struct Index;

  Manifest manifest_;
  std::string folder_;
  std::vector<std::unique_ptr<File>> files_;
  std::unique_ptr<const Index> index_;
  mutable std::atomic<int64_t> bytes_read_{0};
};

}  // namespace layline::trainer::checkpoint
