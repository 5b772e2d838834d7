// The folder that a run keeps its checkpoints in: a folder `step-0000000040` for each, committed when it has a
// manifest. What is without one was never finished.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layline/base/file_descriptor.h"
#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::checkpoint {

std::string step_folder(const std::string& directory, int64_t step);

// Steps of the committed checkpoints, the newest first. Empty when there is no such directory. Throws base::InputError
// when it cannot be read.
std::vector<int64_t> committed_steps(const std::string& directory);

// The folder of one checkpoint: `path` itself when it has a manifest, else the newest in it. Throws base::InputError.
std::string find_checkpoint(const std::string& path);

// Holds the directory for one run, until it is destroyed or the process ends, whichever way.
class FolderLock {
 public:
  // Makes the directory if it is missing. Throws base::InputError when another run holds it (its process and machine),
  // or it cannot be written.
  explicit FolderLock(const std::string& directory);

 private:
  base::FileDescriptor file_;
};

// These are for the one that holds the lock.
// Removes folders of steps without a manifest.
void remove_unfinished(const std::string& directory);
// Renames the checkpoints of later steps, so that they count no more: they are left as step-0000000060.set-aside.
// Returns the new names.
std::vector<std::string> set_aside_after(const std::string& directory, int64_t step);
// Removes the oldest until `keep` are left. The manifest goes first: half a checkpoint is none.
void prune(const std::string& directory, int64_t keep);
// Removes the folder of one step and what is in it.
void remove_step(const std::string& directory, int64_t step);

// Writes the manifest: from now on the checkpoint is there. The files are on disk. Throws base::RunError.
void commit(const std::string& folder, const Manifest& manifest);

}  // namespace layline::trainer::checkpoint
