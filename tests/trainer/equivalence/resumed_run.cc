#include "resumed_run.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "layline/base/error.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/loop/checkpointer.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer {

namespace {

constexpr auto kTimeout = std::chrono::seconds(30);

config::RunConfig run_config(const TinyCase& tiny, const std::string& directory, bool resumes) {
  config::RunConfig config;
  config.where = "run.json";
  config.model = tiny_model(tiny);
  config.sequence_length = 8;
  config.global_batch = tiny.global_batch;
  config.steps = tiny.steps;
  config.precision = tiny.dtype == at::kDouble ? config::Precision::kFp64 : config::Precision::kBf16;
  config.checkpoint.directory = directory;
  config.checkpoint.resume = resumes ? config::Resume::kNewest : config::Resume::kNo;
  return config;
}

void ignore(const std::string&) {}

void run_first(const TinyCase& tiny, const Interruption& interruption, const std::string& directory,
               comm::GroupFactory& factory) {
  const config::RunConfig config = run_config(tiny, directory, false);
  const loop::TrainingJob job = training_job(tiny, interruption.before);
  loop::RankTrainer trainer(job, factory);
  loop::Checkpointer checkpoints(config, job, trainer, ignore);
  checkpoints.resume();
  trainer.initialize();
  loop::Progress saved;
  for (int64_t step = 1; step <= interruption.last_step; ++step) {
    trainer.step(micro_batches(tiny, interruption.before, trainer.dp_rank(), step));
    if (step != interruption.saved_step) continue;
    saved = {step, step * tiny.global_batch * config.sequence_length, step * tiny.global_batch};
    checkpoints.save(saved);
  }
  checkpoints.finish(saved);
}

std::string run_second(const TinyCase& tiny, const Interruption& interruption, const RunRecord& reference,
                       double tolerance, const std::string& directory, comm::GroupFactory& factory) {
  const config::RunConfig config = run_config(tiny, directory, true);
  const loop::TrainingJob job = training_job(tiny, interruption.after);
  loop::RankTrainer trainer(job, factory);
  loop::Checkpointer checkpoints(config, job, trainer, ignore);
  const loop::Progress start = checkpoints.resume().value_or(loop::Progress{});
  if (start.step != interruption.saved_step) return fmt::format("resumed at step {}", start.step);
  const int64_t next = start.next_sample / tiny.global_batch + 1;
  if (next != start.step + 1) return fmt::format("resumed at sample {}", start.next_sample);
  return compare_steps(trainer, tiny, interruption.after, reference, next, tiny.steps, tolerance, factory.rank());
}

}  // namespace

std::string compare_resumed(const TinyCase& tiny, const Interruption& interruption, const RunRecord& reference,
                            double tolerance) {
  const formats::test::TemporaryFolder folder;
  std::mutex mutex;
  std::string differences;
  try {
    comm::run_as_threads(interruption.before.world_size(), kTimeout,
                         [&](comm::GroupFactory& factory) { run_first(tiny, interruption, folder.path(), factory); });
    comm::run_as_threads(interruption.after.world_size(), kTimeout, [&](comm::GroupFactory& factory) {
      const std::string found = run_second(tiny, interruption, reference, tolerance, folder.path(), factory);
      const std::lock_guard lock(mutex);
      differences += found;
    });
  } catch (const base::InputError& error) {
    return error.what();
  } catch (const base::RunError& error) {
    return error.what();
  }
  return differences;
}

}  // namespace layline::trainer
