// A checkpoint that no run wrote, from weights that are elsewhere.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "layline/base/progress.h"
#include "layline/spec/model.h"
#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::convert {

// Everything const may be called by several threads at once.
class WeightSource {
 public:
  WeightSource() = default;
  WeightSource(const WeightSource&) = delete;
  WeightSource& operator=(const WeightSource&) = delete;
  virtual ~WeightSource() = default;
  // Fills `out`, row-major, numbers of the manifest's type.
  virtual void read(checkpoint::Kind kind, const std::string& weight, const checkpoint::Box& box,
                    std::span<std::byte> out) const = 0;
};

struct WriteOptions {
  int64_t file_bytes = int64_t{1} << 30;  // about: what is in memory at a time
  base::ProgressSink* sink = nullptr;
  std::function<bool()> is_cancelled;  // may be empty
};

// Writes manifest.step into `directory`, which has no checkpoint yet; the manifest's files are filled in. Weights that
// tensor parallelism shards by column are stored in panels, as a run's are. Returns its folder. Throws
// base::InputError (the directory, and what the source throws) and base::RunError (a full disk, cancelled); then
// nothing of the checkpoint stays.
std::string write_checkpoint(const std::string& directory, checkpoint::Manifest manifest, const spec::Model& model,
                             const WeightSource& source, const WriteOptions& options);

}  // namespace layline::trainer::convert
