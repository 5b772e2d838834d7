// Writes a run's checkpoints while it trains on, and finds the one that it goes on from.
//
//   Checkpointer checkpoints(config, trainer, say);     // on every rank: takes the directory's lock, cleans up
//   if (!checkpoints.resume()) trainer.initialize();
//   … after each step, on every rank …
//   if (checkpoints.is_due(step)) checkpoints.save(progress);        // copies, and starts to write
//   checkpoints.after_step(exchange(checkpoints.status()));          // the largest of all ranks
//   checkpoints.finish(progress);                                    // after the last step
//
// A save goes through two phases, which all ranks go through together: each writes its file; when all are on disk, rank
// 0 writes the manifest and removes old checkpoints. Memory: one copy of what the rank saves, outside of what is
// counted as tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "layline/trainer/config/run_config.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop {

// How far a run has come.
struct Progress {
  int64_t step = 0;         // that was done last
  int64_t tokens = 0;       // so far
  int64_t next_sample = 0;  // global index of the first one that was not read
};

class Checkpointer {
 public:
  // Says a line to the user. Only rank 0 is heard at once.
  using Say = std::function<void(const std::string&)>;

  // Every rank of the world calls it; config.checkpoint.directory is not empty. Throws base::InputError when another
  // run holds the directory, when it cannot be written, or when it has checkpoints and the run does not resume.
  Checkpointer(const config::RunConfig& config, const TrainingJob& job, RankTrainer& trainer, Say say);
  ~Checkpointer();

  // Loads the checkpoint to go on from into the trainer: how far it had come; nothing, and the trainer untouched, when
  // there is none or the run does not resume. Every rank calls it. Throws base::InputError when the checkpoint is
  // damaged, or not of such a run.
  std::optional<Progress> resume();

  bool is_due(int64_t step) const;
  // Copies this rank's part and starts to write it. Waits for the save before it, if that is not finished. Every rank
  // calls it after the same step.
  void save(const Progress& progress);

  struct Status {
    bool is_busy = false;     // this rank works on the current phase
    bool has_failed = false;  // in it
  };
  Status status() const;
  // With what any rank's status said after the same step: ends a phase that all have ended. Throws base::RunError on
  // the rank whose save failed, unless checkpoint.on_error is "continue": that says so, every time.
  void after_step(Status of_all);

  // Saves what is not saved yet, and waits until it is committed. Throws base::RunError when that failed, whatever
  // on_error says. Every rank calls it.
  void finish(const Progress& progress);

 private:
  void wait();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace layline::trainer::loop
