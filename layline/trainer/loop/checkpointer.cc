#include "layline/trainer/loop/checkpointer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/checkpoint/reader.h"
#include "layline/trainer/checkpoint/shard_file.h"
#include "layline/trainer/config/check_run.h"
#include "layline/trainer/loop/load_state.h"
#include "layline/trainer/loop/state_copy.h"
#include "layline/trainer/model/mutation.h"

namespace layline::trainer::loop {

namespace {

using checkpoint::CheckpointReader;
using checkpoint::Manifest;
using Clock = std::chrono::steady_clock;
using model::mutated;
using model::Mutation;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The same on all ranks, and another one in every run: what a rank of a run that died goes on to write has other names.
int64_t draw_run_id(comm::Group& world) {
  const at::Tensor id = at::zeros({1}, at::kLong);
  if (world.rank() == 0) id.fill_(static_cast<int64_t>(std::random_device()()));
  world.broadcast(id, 0);
  return id.item<int64_t>();
}

// What went wrong; "" when nothing did.
using Task = std::shared_future<std::string>;

Task start_task(std::function<void()> work) {
  const auto run = [work = std::move(work)]() -> std::string {
    try {
      work();
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  };
  return std::async(std::launch::async, run).share();
}

constexpr std::chrono::milliseconds kBetweenLooks(50);

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return;
  throw base::RunError(path, fmt::format("cannot be made: {}", std::generic_category().message(errno)));
}

}  // namespace

struct Checkpointer::State {
  State(const config::RunConfig& run_config, const TrainingJob& training_job, RankTrainer& rank_trainer, Say say_line)
      : config(run_config), job(training_job), trainer(rank_trainer), say(std::move(say_line)) {}

  enum class Phase { kIdle, kWriting, kCommitting };

  bool is_main() const { return trainer.world().rank() == 0; }
  std::string shard_name(int64_t rank) const {
    return fmt::format("shard-{:05}-of-{:05}.{:08x}.safetensors", rank, trainer.world().size(), run_id);
  }
  std::string entry_path(int64_t rank) const { return folder + "/" + shard_name(rank) + ".json"; }

  formats::TensorType type() const {
    return job.dtype == at::kDouble ? formats::TensorType::kF64 : formats::TensorType::kF32;
  }
  void prepare_directory();
  int64_t choose_step();
  Manifest manifest() const;
  void write_shard();
  void write_manifest() const;
  void start(Phase next, std::function<void()> work);
  void next_phase();
  void give_up();
  Status exchange(Status own) const;
  std::string failure_text() const;

  const config::RunConfig& config;
  TrainingJob job;
  RankTrainer& trainer;
  Say say;
  std::vector<checkpoint::SavedParameter> parameters;
  std::optional<checkpoint::FolderLock> lock;  // of rank 0
  int64_t run_id = 0;
  std::unique_ptr<StateCopy> copy;

  Phase phase = Phase::kIdle;
  Task task;  // of the phase
  std::atomic<bool> is_cancelled{false};
  Progress saving;  // by the current save
  std::string folder;
  Clock::time_point save_start;
  std::optional<int64_t> saved_step;  // committed last
  std::string failure;                // of the last save, until one succeeds
  int64_t failed_step = 0;
};

Checkpointer::Checkpointer(const config::RunConfig& config, const TrainingJob& job, RankTrainer& trainer, Say say)
    : state_(std::make_unique<State>(config, job, trainer, std::move(say))) {
  State& s = *state_;
  if (s.is_main()) s.prepare_directory();
  trainer.world().barrier();
  s.run_id = draw_run_id(trainer.world());
  s.parameters = saved_parameters(config.model);
  s.copy = std::make_unique<StateCopy>(trainer, job, s.parameters);
}

Checkpointer::~Checkpointer() {
  state_->is_cancelled = true;
  if (state_->task.valid()) state_->task.wait();  // it uses the state
}

void Checkpointer::State::prepare_directory() {
  const std::string& directory = config.checkpoint.directory;
  lock.emplace(directory);
  config::check_checkpoints_are_own(config);
  checkpoint::remove_unfinished(directory);
}

// On rank 0; -1: there is none.
int64_t Checkpointer::State::choose_step() {
  if (config.checkpoint.resume == config::Resume::kNo) return -1;
  const std::string& directory = config.checkpoint.directory;
  const std::vector<int64_t> steps = checkpoint::committed_steps(directory);
  if (config.checkpoint.resume == config::Resume::kNewest) return steps.empty() ? -1 : steps.front();
  if (steps.size() < 2) {
    throw base::InputError(config::place_of(config, "checkpoint.resume"),
                           fmt::format("\"{}\" has {}; \"previous\" wants two checkpoints, to go on from the older one",
                                       directory, steps.empty() ? "no checkpoint" : "one checkpoint only"));
  }
  for (const std::string& name : checkpoint::set_aside_after(directory, steps[1])) {
    say(fmt::format("checkpoint set aside: {}", name));
  }
  return steps[1];
}

std::optional<Progress> Checkpointer::resume() {
  State& s = *state_;
  const at::Tensor step = at::full({1}, -1, at::kLong);
  if (s.is_main()) step.fill_(s.choose_step());
  s.trainer.world().broadcast(step, 0);
  if (step.item<int64_t>() < 0) return std::nullopt;
  const Clock::time_point start = Clock::now();
  const CheckpointReader reader(checkpoint::step_folder(s.config.checkpoint.directory, step.item<int64_t>()));
  const Manifest& manifest = reader.manifest();
  check_resumable(reader, s.config, s.parameters, s.job.dtype);
  load_state(reader, s.trainer, manifest.step);
  s.trainer.world().barrier();
  s.saved_step = manifest.step;
  if (s.is_main()) {
    s.say(fmt::format("going on from {}: step {}, {} tokens, written by {} (read in {})", reader.folder(),
                      manifest.step, base::format_count(manifest.tokens), manifest.layout,
                      base::format_seconds(seconds_since(start))));
    for (const std::string& line : differences(manifest, s.config)) s.say(line);
  }
  return Progress{manifest.step, manifest.tokens, mutated(Mutation::kForgetDataPosition) ? 0 : manifest.next_sample};
}

bool Checkpointer::is_due(int64_t step) const {
  const int64_t every = state_->config.checkpoint.every_steps;
  return every > 0 && step % every == 0 && step != state_->saved_step;
}

Manifest Checkpointer::State::manifest() const {
  Manifest manifest;
  manifest.step = saving.step;
  manifest.tokens = saving.tokens;
  manifest.next_sample = saving.next_sample;
  manifest.seed = config.seed;
  manifest.layout = layout::to_text(job.layout);
  manifest.run = config::to_json(config);
  manifest.type = type();
  manifest.parameters = parameters;
  return manifest;
}

void Checkpointer::State::start(Phase next, std::function<void()> work) {
  phase = next;
  is_cancelled = false;
  task = start_task(std::move(work));
}

void Checkpointer::State::write_shard() {
  if (mutated(Mutation::kLateCopy)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    copy->take();
  }
  make_folder(folder);
  const int64_t rank = trainer.world().rank();
  const checkpoint::SavedFile saved =
      checkpoint::write_shard(folder, shard_name(rank), type(), copy->slices(),
                              {{"format", "layline-checkpoint"}, {"step", std::to_string(saving.step)}},
                              [this] { return is_cancelled.load(); });
  base::write_file_atomically(entry_path(rank), checkpoint::to_json(saved));
}

// On rank 0, when all files are there.
void Checkpointer::State::write_manifest() const {
  Manifest whole = manifest();
  for (int64_t rank = 0; rank < trainer.world().size(); ++rank) {
    const std::string path = entry_path(rank);
    checkpoint::SavedFile file = checkpoint::parse_saved_file(base::read_file(path), path);
    if (!file.slices.empty()) whole.files.push_back(std::move(file));
  }
  checkpoint::commit(folder, whole);
  for (int64_t rank = 0; rank < trainer.world().size(); ++rank) {
    std::error_code ignored;
    std::filesystem::remove(entry_path(rank), ignored);
  }
  try {
    checkpoint::prune(config.checkpoint.directory, config.checkpoint.keep);
  } catch (const base::InputError&) {
    // The checkpoint is there: what could not be removed goes after the next save.
  }
}

void Checkpointer::save(const Progress& progress) {
  State& s = *state_;
  wait();
  s.saving = progress;
  s.folder = checkpoint::step_folder(s.config.checkpoint.directory, progress.step);
  s.save_start = Clock::now();
  if (!mutated(Mutation::kLateCopy)) s.copy->take();
  s.start(State::Phase::kWriting, [&s] { s.write_shard(); });
}

Checkpointer::Status Checkpointer::State::exchange(Status own) const {
  const at::Tensor numbers = at::tensor({own.is_busy ? 1.0 : 0.0, own.has_failed ? 1.0 : 0.0}, at::kDouble);
  trainer.world().all_reduce_max(numbers);
  return {numbers[0].item<double>() > 0, numbers[1].item<double>() > 0};
}

Checkpointer::Status Checkpointer::status() const {
  const State& s = *state_;
  if (s.phase == State::Phase::kIdle) return {};
  if (s.task.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {true, false};
  return {false, !s.task.get().empty()};
}

std::string Checkpointer::State::failure_text() const {
  return fmt::format(
      "the checkpoint of step {} was not written: {}; {}", failed_step, failure,
      saved_step ? fmt::format("the last good one is of step {}", *saved_step) : std::string("there is none"));
}

void Checkpointer::after_step(Status of_all) {
  State& s = *state_;
  if (s.phase != State::Phase::kIdle && !of_all.is_busy) {
    if (of_all.has_failed) {
      s.give_up();
    } else {
      s.next_phase();
    }
  }
  if (s.failure.empty()) return;
  if (s.config.checkpoint.on_error == config::OnSaveError::kStop) throw base::RunError("checkpoint", s.failure_text());
  s.say(s.failure_text());
}

// All ranks have ended the one before.
void Checkpointer::State::next_phase() {
  if (phase == Phase::kWriting) {
    return start(Phase::kCommitting, [this] {
      if (is_main()) write_manifest();
    });
  }
  phase = Phase::kIdle;
  saved_step = saving.step;
  failure.clear();
  if (!is_main()) return;
  say(fmt::format("checkpoint of step {}: {} in {}", saving.step, folder,
                  base::format_seconds(seconds_since(save_start))));
}

// A part of a checkpoint is of no use: the disk may be full.
void Checkpointer::State::give_up() {
  phase = Phase::kIdle;
  if (!task.get().empty()) {
    failure = task.get();
    failed_step = saving.step;
  }
  for (const std::string& path :
       {folder + "/" + shard_name(trainer.world().rank()), entry_path(trainer.world().rank())}) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  std::error_code ignored;
  std::filesystem::remove(folder, ignored);  // by the last of the ranks, when it is empty
}

// Ranks look together, so that none waits in a collective for one that still writes.
void Checkpointer::wait() {
  State& s = *state_;
  while (s.phase != State::Phase::kIdle) {
    s.task.wait_for(kBetweenLooks);
    after_step(s.exchange(status()));
  }
}

void Checkpointer::finish(const Progress& progress) {
  State& s = *state_;
  wait();
  if (s.saved_step == progress.step) return;
  save(progress);
  wait();
  if (!s.failure.empty()) throw base::RunError("checkpoint", s.failure_text());
}

}  // namespace layline::trainer::loop
