#include "layline/trainer/loop/train.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"
#include "layline/trainer/comm/activity.h"
#include "layline/trainer/comm/gloo_group.h"
#include "layline/trainer/comm/rendezvous.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/comm/watch.h"
#include "layline/trainer/config/resolve_layout.h"
#include "layline/trainer/data/batch.h"
#include "layline/trainer/data/data_set.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/loop/banner.h"
#include "layline/trainer/loop/checkpointer.h"
#include "layline/trainer/loop/cores.h"
#include "layline/trainer/loop/load_weights.h"
#include "layline/trainer/loop/meeting.h"
#include "layline/trainer/loop/memory_counter.h"
#include "layline/trainer/loop/prepare.h"
#include "layline/trainer/loop/rank_trainer.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::loop {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Steps after which measured and predicted are set side by side: the first ones warm caches up.
constexpr int64_t kComparedStep = 5;
constexpr size_t kEtaSteps = 20;           // that the ETA looks back on
constexpr int64_t kValidationBatches = 8;  // at most, of global_batch sequences
// Beyond the time-out, after which the watch has named the ranks that did not come.
constexpr auto kTimeoutReserve = std::chrono::seconds(10);

// Ends what a rank reports to the others when the user can mend it: all have the same exit code.
const std::string kMendableMark = "\n";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
milliseconds to_milliseconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

template <typename Number, size_t Count>
std::map<std::string, Number> by_name(const std::array<std::string_view, Count>& names, const double* numbers) {
  std::map<std::string, Number> named;
  for (size_t i = 0; i < Count; ++i) named.emplace(names[i], static_cast<Number>(numbers[i]));
  return named;
}

// The step loop of one rank, with its groups made.
class Run {
 public:
  Run(const config::RunConfig& config, const config::ResolvedLayout& resolved, comm::GroupFactory& factory,
      Observer& observer, MemoryCounter& memory)
      : config_(config),
        resolved_(resolved),
        observer_(observer),
        memory_(memory),
        job_(training_job(config, resolved)),
        train_data_(open_training_data(config)),
        trainer_(job_, factory) {
    if (!config.data.valid.empty()) valid_data_.emplace(open_validation_data(config));
    if (!config.checkpoint.directory.empty()) {
      checkpoints_.emplace(config, job_, trainer_, [this](const std::string& line) { say_later(line); });
      if (const std::optional<Progress> resumed = checkpoints_->resume()) {
        done_ = *resumed;
        return;
      }
    }
    set_first_weights();
  }

  void run() {
    const config::Prediction prediction = config::predict(resolved_.job, resolved_.layout);
    if (is_main()) {
      observer_.on_banner(banner(config_, resolved_, prediction, job_, train_data_.num_samples()));
    }
    is_started_ = true;
    for (const std::string& line : waiting_lines_) observer_.on_message(line);
    const Clock::time_point start = Clock::now();
    const int64_t compared_step = done_.step + kComparedStep;
    bool stops = false;
    while (done_.step < config_.steps && !stops) {
      observer_.before_step();
      StepRecord record = one_step();
      save_if_due(record);
      Agreement agreement;
      agreement.stops =
          observer_.wants_stop() || (config_.stop_after_seconds && seconds_since(start) > *config_.stop_after_seconds);
      if (checkpoints_) agreement.checkpoints = checkpoints_->status();
      exchange(record, agreement);
      stops = agreement.stops;
      if (is_main()) observer_.on_step(record);
      if (checkpoints_) checkpoints_->after_step(agreement.checkpoints);
      if (is_main() && record.step == compared_step) compare(prediction, record);
    }
    if (checkpoints_) checkpoints_->finish(done_);
    trainer_.world().barrier();
    if (is_main()) observer_.on_end();
  }

 private:
  bool is_main() { return trainer_.world().rank() == 0; }

  // Until the banner is out, what there is to say waits.
  void say_later(const std::string& line) {
    if (is_started_) {
      observer_.on_message(line);
    } else {
      waiting_lines_.push_back(line);
    }
  }

  void set_first_weights() {
    if (config_.load.empty()) return trainer_.initialize();
    const data::SafetensorsFolder folder(config_.load);
    check_fits(folder, config_.model);
    trainer_.set_weights([&folder](model::Parameter& parameter) { load_weights(folder, parameter); });
  }

  void save_if_due(StepRecord& record) {
    if (!checkpoints_ || !checkpoints_->is_due(record.step)) return;
    const Clock::time_point start = Clock::now();
    checkpoints_->save(done_);
    record.checkpoint_seconds = seconds_since(start);
  }

  void compare(const config::Prediction& prediction, const StepRecord& record) {
    for (const std::string& line :
         compare_with_prediction(prediction, median_seconds(), record.peak_memory_bytes_by_stage)) {
      observer_.on_message(line);
    }
  }

  std::vector<data::MicroBatch> read(const data::DataSet& data, int64_t first_sample) const {
    std::vector<data::MicroBatch> batches;
    for (int64_t m = 0; m < job_.num_micro_batches(); ++m) {
      batches.push_back(data::read_micro_batch(data, {.first_sample = first_sample,
                                                      .global_batch = config_.global_batch,
                                                      .dp_rank = trainer_.dp_rank(),
                                                      .dp = job_.layout.dp,
                                                      .mb = job_.layout.mb,
                                                      .index = m}));
    }
    return batches;
  }

  StepRecord one_step() {
    const Clock::time_point start = Clock::now();
    tally::take_work_seconds();
    const StepResult result = trainer_.step(read(train_data_, done_.next_sample));
    const int64_t step = ++done_.step;
    done_.next_sample += config_.global_batch;
    done_.tokens += config_.global_batch * config_.sequence_length;
    work_seconds_ = tally::take_work_seconds();
    StepRecord record;
    record.step_seconds = seconds_since(start);
    record.step = step;
    record.steps = config_.steps;
    record.loss = result.loss;
    record.grad_norm = result.grad_norm;
    record.learning_rate = result.learning_rate;
    record.tokens = done_.tokens;
    record.tokens_per_second = config_.tokens_per_step() / record.step_seconds;
    record.layout = layout::to_text(job_.layout);
    record.num_parameters = config_.model.num_parameters();
    record.mfu = config::model_flops_utilization(resolved_, record.step_seconds);
    step_seconds_.push_back(record.step_seconds);
    if (step_seconds_.size() > kEtaSteps) step_seconds_.pop_front();
    record.eta_seconds = static_cast<double>(config_.steps - step) * median_seconds();
    const int64_t every = config_.data.valid_every_steps;
    if (valid_data_ && every > 0 && (step % every == 0 || step == config_.steps)) record.validation_loss = validate();
    return record;
  }

  // The mean over whole batches from the start of the validation set.
  double validate() {
    const int64_t batches =
        std::clamp<int64_t>(valid_data_->num_samples() / config_.global_batch, 1, kValidationBatches);
    double sum = 0;
    for (int64_t i = 0; i < batches; ++i) sum += trainer_.evaluate(read(*valid_data_, i * config_.global_batch));
    return sum / static_cast<double>(batches);
  }

  // What ranks decide together after a step: what any of them says.
  struct Agreement {
    bool stops = false;
    Checkpointer::Status checkpoints;
  };

  // One small exchange a step: seconds and peak memory of all stages, and the agreement.
  void exchange(StepRecord& record, Agreement& agreement) {
    // Of each stage: the peak of the fullest rank, then seconds and bytes of the first one.
    constexpr int64_t kWidth = 1 + tally::kNumWorks + tally::kNumOwners;
    const int64_t pp = job_.layout.pp;
    const at::Tensor numbers = at::zeros({pp * kWidth + 3}, at::kDouble);
    double* values = numbers.mutable_data_ptr<double>();
    double* own = values + trainer_.pp_rank() * kWidth;
    *own = static_cast<double>(memory_.peak_bytes());
    if (trainer_.tp_rank() == 0 && trainer_.dp_rank() == 0) {
      std::ranges::copy(work_seconds_, own + 1);
      std::ranges::copy(memory_.peak_bytes_by_owner(), own + 1 + tally::kNumWorks);
    }
    double* flags = values + pp * kWidth;
    flags[0] = agreement.stops ? 1 : 0;
    flags[1] = agreement.checkpoints.is_busy ? 1 : 0;
    flags[2] = agreement.checkpoints.has_failed ? 1 : 0;
    trainer_.world().all_reduce_max(numbers);
    for (int64_t stage = 0; stage < pp; ++stage) {
      const double* of_stage = values + stage * kWidth;
      record.peak_memory_bytes_by_stage.push_back(static_cast<int64_t>(*of_stage));
      record.seconds_by_stage.push_back(by_name<double>(tally::kWorkNames, of_stage + 1));
      record.memory_bytes_by_stage.push_back(by_name<int64_t>(tally::kOwnerNames, of_stage + 1 + tally::kNumWorks));
    }
    record.peak_memory_bytes = *std::ranges::max_element(record.peak_memory_bytes_by_stage);
    agreement = {flags[0] > 0, {flags[1] > 0, flags[2] > 0}};
  }

  double median_seconds() const {
    std::vector<double> sorted(step_seconds_.begin(), step_seconds_.end());
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }

  const config::RunConfig& config_;
  const config::ResolvedLayout& resolved_;
  Observer& observer_;
  MemoryCounter& memory_;
  TrainingJob job_;
  data::DataSet train_data_;
  std::optional<data::DataSet> valid_data_;
  RankTrainer trainer_;
  std::optional<Checkpointer> checkpoints_;
  Progress done_;
  bool is_started_ = false;
  std::vector<std::string> waiting_lines_;
  std::deque<double> step_seconds_;
  tally::WorkSeconds work_seconds_{};  // of the last step
};

void train_alone(const config::RunConfig& config, const config::ResolvedLayout& resolved, Observer& observer,
                 MemoryCounter& memory) {
  comm::ThreadWorld world(1, to_milliseconds(config.timeout_seconds));
  const std::unique_ptr<comm::GroupFactory> factory = world.factory(0);
  Run(config, resolved, *factory, observer, memory).run();
}

[[noreturn]] void end_with(const comm::Failure& failure) {
  const bool is_mendable = failure.message.ends_with(kMendableMark);
  if (!failure.is_own) throw FailedElsewhere(is_mendable);
  if (!is_mendable) throw std::runtime_error(failure.message);
  throw base::InputError(failure.message.substr(0, failure.message.size() - kMendableMark.size()));
}

void train_together(const config::RunConfig& config, const config::ResolvedLayout& resolved, const Launch& launch,
                    Observer& observer, MemoryCounter& memory) {
  const milliseconds timeout = to_milliseconds(config.timeout_seconds);
  const std::unique_ptr<comm::RunStore> store = meet(config, launch, timeout);
  if (launch.shares_cores) use_share_of_cores(*store);
  comm::Activity activity;
  comm::GlooFactory factory(store->store(), launch.rank, launch.world_size,
                            {.timeout = timeout + kTimeoutReserve, .address = store->address(), .activity = &activity});
  comm::Watch watch(*store, {.wait_limit = timeout}, &activity, [&](const comm::Failure& failure) {
    observer.on_failure_elsewhere();
    factory.abort(failure.message);
  });
  comm::Failure failure;
  try {
    Run(config, resolved, factory, observer, memory).run();
    failure = watch.finish();
  } catch (const comm::CommError& error) {
    failure = watch.report_loss(error.what());
  } catch (const base::InputError& error) {
    failure = watch.report(error.what() + kMendableMark);
  } catch (const std::exception& error) {
    failure = watch.report(error.what());
  }
  if (!failure.message.empty()) end_with(failure);
}

config::ResolvedLayout resolve_layout(const config::RunConfig& config, const Launch& launch) {
  try {
    return config::resolve_layout(config, launch.world_size);
  } catch (const base::InputError& error) {
    give_up(error.what(), launch);
  }
}

}  // namespace

void train(const config::RunConfig& config, const Launch& launch, Observer& observer) {
  MemoryCounter& memory = MemoryCounter::install();
  if (config.memory_limit_bytes) memory.set_limit(*config.memory_limit_bytes);
  const config::ResolvedLayout resolved = resolve_layout(config, launch);
  if (launch.world_size == 1) {
    train_alone(config, resolved, observer, memory);
  } else {
    train_together(config, resolved, launch, observer, memory);
  }
}

}  // namespace layline::trainer::loop
