#include "layline/trainer/loop/train.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "layline/base/error.h"
#include "layline/cost/step.h"
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
#include "layline/trainer/loop/load_weights.h"
#include "layline/trainer/loop/memory_counter.h"
#include "layline/trainer/loop/rank_trainer.h"

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

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }
milliseconds to_milliseconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

at::ScalarType scalar_type(config::Precision precision) {
  switch (precision) {
    case config::Precision::kBf16:
      return at::kBFloat16;
    case config::Precision::kFp32:
      return at::kFloat;
    case config::Precision::kFp64:
      return at::kDouble;
  }
  return at::kFloat;
}

TrainingJob training_job(const config::RunConfig& config, const config::ResolvedLayout& resolved) {
  TrainingJob job;
  job.model = config.model;
  job.layout = resolved.layout;
  // The split that was priced.
  const memory::EndCosts ends = cost::Pricer(resolved.job).end_costs(resolved.layout);
  job.stages = layout::stages_of(resolved.layout, config.model.num_layers, ends.embedding_layers, ends.head_layers);
  job.sequence_length = config.sequence_length;
  job.global_batch = config.global_batch;
  job.dtype = scalar_type(config.precision);
  job.seed = static_cast<uint64_t>(config.seed);
  job.steps = config.steps;
  const config::OptimizerConfig& o = config.optimizer;
  job.optimizer = {.learning_rate = o.learning_rate,
                   .warmup_steps = o.warmup_steps,
                   .min_learning_rate = o.min_learning_rate,
                   .beta1 = o.beta1,
                   .beta2 = o.beta2,
                   .epsilon = o.epsilon,
                   .weight_decay = o.weight_decay,
                   .clip = o.clip};
  return job;
}

data::DataSet open_data(const config::RunConfig& config, const std::vector<config::DataSource>& sources,
                        data::Order order) {
  data::DataSetOptions options{.sources = {},
                               .sequence_length = config.sequence_length,
                               .vocabulary = config.model.vocab,
                               .order = order,
                               .seed = static_cast<uint64_t>(config.seed)};
  for (const config::DataSource& source : sources) options.sources.push_back({source.path, source.weight});
  return data::DataSet(options);
}

// Everything that must be the same on all ranks, by its key in RUN.json.
std::map<std::string, std::string> settings_of(const config::RunConfig& config) {
  std::map<std::string, std::string> entries;
  const nlohmann::json settings = nlohmann::json::parse(config::to_json(config));
  for (const auto& [key, value] : settings.items()) entries[key] = value.dump();
  return entries;
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
        train_data_(open_data(
            config, config.data.train,
            config.data.order == config::DataOrder::kShuffled ? data::Order::kShuffled : data::Order::kSequential)),
        trainer_(job_, factory) {
    if (!config.data.valid.empty()) valid_data_.emplace(open_data(config, config.data.valid, data::Order::kSequential));
    if (config.load.empty()) {
      trainer_.initialize();
    } else {
      const data::SafetensorsFolder folder(config.load);
      check_fits(folder, config.model);
      trainer_.set_weights([&folder](model::Parameter& parameter) { load_weights(folder, parameter); });
    }
  }

  void run() {
    const config::Prediction prediction = config::predict(resolved_.job, resolved_.layout);
    if (is_main()) {
      observer_.on_banner(banner(config_, resolved_, prediction, job_, train_data_.num_samples()));
    }
    const Clock::time_point start = Clock::now();
    bool stops = false;
    for (int64_t step = 1; step <= config_.steps && !stops; ++step) {
      observer_.before_step();
      StepRecord record = one_step(step);
      const bool wants_stop =
          observer_.wants_stop() || (config_.stop_after_seconds && seconds_since(start) > *config_.stop_after_seconds);
      stops = exchange(record, wants_stop);
      if (!is_main()) continue;
      observer_.on_step(record);
      if (step == kComparedStep) {
        for (const std::string& line :
             compare_with_prediction(prediction, median_seconds(), record.peak_memory_bytes_by_stage)) {
          observer_.on_message(line);
        }
      }
    }
    trainer_.world().barrier();
  }

 private:
  bool is_main() { return trainer_.world().rank() == 0; }

  std::vector<data::MicroBatch> read(const data::DataSet& data, int64_t step) const {
    std::vector<data::MicroBatch> batches;
    for (int64_t m = 0; m < job_.num_micro_batches(); ++m) {
      batches.push_back(data::read_micro_batch(data, {.step = step,
                                                      .global_batch = config_.global_batch,
                                                      .dp_rank = trainer_.dp_rank(),
                                                      .dp = job_.layout.dp,
                                                      .mb = job_.layout.mb,
                                                      .index = m}));
    }
    return batches;
  }

  StepRecord one_step(int64_t step) {
    const Clock::time_point start = Clock::now();
    const StepResult result = trainer_.step(read(train_data_, step));
    StepRecord record;
    record.step_seconds = seconds_since(start);
    record.step = step;
    record.steps = config_.steps;
    record.loss = result.loss;
    record.grad_norm = result.grad_norm;
    record.learning_rate = result.learning_rate;
    record.tokens = step * config_.global_batch * config_.sequence_length;
    record.tokens_per_second = config_.tokens_per_step() / record.step_seconds;
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
    for (int64_t i = 1; i <= batches; ++i) sum += trainer_.evaluate(read(*valid_data_, i));
    return sum / static_cast<double>(batches);
  }

  // One small exchange a step: peak memory of all stages, and whether any rank wants to stop.
  bool exchange(StepRecord& record, bool wants_stop) {
    const int64_t pp = job_.layout.pp;
    const at::Tensor numbers = at::zeros({pp + 1}, at::kDouble);
    double* values = numbers.mutable_data_ptr<double>();
    values[trainer_.pp_rank()] = static_cast<double>(memory_.peak_bytes());
    values[pp] = wants_stop ? 1 : 0;
    trainer_.world().all_reduce_max(numbers);
    for (int64_t stage = 0; stage < pp; ++stage) {
      record.peak_memory_bytes_by_stage.push_back(static_cast<int64_t>(values[stage]));
    }
    record.peak_memory_bytes = *std::ranges::max_element(record.peak_memory_bytes_by_stage);
    return values[pp] > 0;
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
  std::deque<double> step_seconds_;
};

// Runs `work` where every rank makes the same mistake at the same time: one rank a machine says it.
template <typename Work>
auto say_once_a_machine(const Launch& launch, const Work& work) {
  try {
    return work();
  } catch (const base::InputError&) {
    if (launch.local_rank != 0) throw FailedElsewhere(true);
    throw;
  }
}

std::unique_ptr<comm::RunStore> meet(const config::RunConfig& config, const Launch& launch) {
  std::unique_ptr<comm::RunStore> store;
  try {
    store = std::make_unique<comm::RunStore>(comm::Rendezvous{.rank = launch.rank,
                                                              .world_size = launch.world_size,
                                                              .host = launch.master_addr,
                                                              .port = launch.master_port,
                                                              .timeout = launch.meeting_timeout});
  } catch (const base::InputError&) {
    // Rank 1 speaks where rank 0 never came.
    if (launch.local_rank != 0 && launch.rank != 1) throw FailedElsewhere(true);
    throw;
  }
  try {
    store->check_same(settings_of(config));
  } catch (const base::InputError&) {
    if (launch.rank != 0) throw FailedElsewhere(true);
    throw;
  }
  return store;
}

void train_alone(const config::RunConfig& config, const config::ResolvedLayout& resolved, Observer& observer,
                 MemoryCounter& memory) {
  comm::ThreadWorld world(1, to_milliseconds(config.timeout_seconds));
  const std::unique_ptr<comm::GroupFactory> factory = world.factory(0);
  Run(config, resolved, *factory, observer, memory).run();
}

void train_together(const config::RunConfig& config, const config::ResolvedLayout& resolved, const Launch& launch,
                    Observer& observer, MemoryCounter& memory) {
  const std::unique_ptr<comm::RunStore> store = meet(config, launch);
  const milliseconds timeout = to_milliseconds(config.timeout_seconds);
  comm::Activity activity;
  comm::GlooFactory factory(store->store(), launch.rank, launch.world_size,
                            {.timeout = timeout + kTimeoutReserve, .address = store->address(), .activity = &activity});
  comm::Watch watch(*store, {.wait_limit = timeout}, &activity, [&](const comm::Failure& failure) {
    observer.on_failure_elsewhere();
    factory.abort(failure.message);
  });
  comm::Failure failure;
  bool is_input_error = false;
  try {
    Run(config, resolved, factory, observer, memory).run();
    failure = watch.finish();
  } catch (const comm::CommError& error) {
    failure = watch.report_loss(error.what());
  } catch (const base::InputError& error) {
    is_input_error = true;
    failure = watch.report(error.what());
  } catch (const std::exception& error) {
    failure = watch.report(error.what());
  }
  if (failure.message.empty()) return;
  if (!failure.is_own) throw FailedElsewhere(is_input_error);
  if (is_input_error) throw base::InputError(failure.message);
  throw std::runtime_error(failure.message);
}

}  // namespace

void train(const config::RunConfig& config, const Launch& launch, Observer& observer) {
  MemoryCounter& memory = MemoryCounter::install();
  if (config.memory_limit_bytes) memory.set_limit(*config.memory_limit_bytes);
  const config::ResolvedLayout resolved =
      say_once_a_machine(launch, [&] { return config::resolve_layout(config, launch.world_size); });
  if (launch.world_size == 1) {
    train_alone(config, resolved, observer, memory);
  } else {
    train_together(config, resolved, launch, observer, memory);
  }
}

}  // namespace layline::trainer::loop
