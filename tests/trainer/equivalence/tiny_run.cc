#include "tiny_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "layline/layout/rank_map.h"
#include "layline/spec/registry.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/model/head.h"

namespace layline::trainer {

namespace {

constexpr int64_t kSequence = 8;
constexpr auto kTimeout = std::chrono::seconds(30);

uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

void fill_sample(const TinyCase& tiny, int64_t step, int64_t sample, int64_t* tokens, int64_t* targets) {
  const auto token = [&](int64_t i) {
    return static_cast<int64_t>(mix(static_cast<uint64_t>((step * 1000 + sample) * 1000 + i)) %
                                static_cast<uint64_t>(tiny.vocab));
  };
  const int64_t num_masked = sample == 1 ? kSequence : sample * 5 % kSequence;
  for (int64_t i = 0; i < kSequence; ++i) {
    tokens[i] = token(i);
    targets[i] = i < num_masked ? model::kIgnoredTarget : token(i + 1);
  }
}

at::Tensor slice_of(const at::Tensor& whole, const model::Parameter& parameter) {
  if (parameter.sharded_dim < 0) return whole;
  const int64_t dim = parameter.sharded_dim, wanted = parameter.local_shape[static_cast<size_t>(dim)];
  const int64_t left = std::clamp<int64_t>(whole.size(dim) - parameter.shard_offset, 0, wanted);
  const at::Tensor slice = whole.narrow(dim, std::min(parameter.shard_offset, whole.size(dim)), left);
  if (left == wanted) return slice;
  std::vector<int64_t> padding = parameter.local_shape;
  padding[static_cast<size_t>(dim)] = wanted - left;
  return at::cat({slice, at::zeros(padding, whole.options())}, dim);
}

class Comparison {
 public:
  Comparison(double tolerance, std::string where) : tolerance_(tolerance), where_(std::move(where)) {}

  void number(const std::string& what, double found, double wanted) {
    if (std::abs(found - wanted) <= tolerance_ * std::abs(wanted)) return;
    add(fmt::format("{} {:.17g} instead of {:.17g}", what, found, wanted));
  }
  void tensor(const std::string& what, const at::Tensor& found, const at::Tensor& wanted, double largest) {
    if (found.numel() == 0) return;
    const double difference = (found - wanted).abs().max().item<double>();
    if (difference <= tolerance_ * largest) return;
    add(fmt::format("{} differs by {:.3g} of its largest entry {:.3g}", what, difference / largest, largest));
  }
  const std::string& text() const { return text_; }

 private:
  void add(const std::string& line) {
    if (text_.size() < 2000) text_ += where_ + ": " + line + "\n";
  }
  double tolerance_;
  std::string where_, text_;
};

double largest(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

void compare_step(const loop::RankTrainer& trainer, const StepRecord& wanted, Comparison& comparison) {
  trainer.for_each_gradient([&](const model::Parameter& parameter, int64_t offset, const at::Tensor& gradient) {
    const at::Tensor& whole = wanted.gradients.at(parameter.name);
    const at::Tensor slice = slice_of(whole, parameter).reshape(-1).narrow(0, offset, gradient.numel());
    comparison.tensor("gradient of " + parameter.name, gradient, slice, largest(whole));
  });
  for (const model::Parameter* parameter : trainer.parameters()) {
    const at::Tensor& whole = wanted.weights.at(parameter->name);
    comparison.tensor("weight " + parameter->name, parameter->value, slice_of(whole, *parameter), largest(whole));
  }
}

}  // namespace

spec::Model tiny_model(const TinyCase& tiny) {
  spec::Model model;
  model.name = model.title = "tiny";
  model.num_layers = tiny.num_layers;
  model.hidden = 32;
  model.num_heads = 4;
  model.num_kv_heads = tiny.num_kv_heads;
  model.head_size = 8;
  model.ffn_hidden = 48;
  model.vocab = tiny.vocab;
  model.tied_embeddings = tiny.tied;
  return model;
}

spec::Job tiny_job(const TinyCase& tiny, int64_t num_ranks) {
  spec::Job job;
  job.model = tiny_model(tiny);
  job.cluster = spec::get_cluster("a100-80gb");
  job.engine = spec::get_engine("layline");
  job.num_gpus = num_ranks;
  job.global_batch = tiny.global_batch;
  job.sequence_length = kSequence;
  return job;
}

loop::TrainingJob training_job(const TinyCase& tiny, const layout::Layout& layout) {
  loop::TrainingJob job;
  job.model = tiny_model(tiny);
  job.layout = layout;
  job.stages = layout::stages_of(layout, tiny.num_layers, 0.5, 1.5);
  job.sequence_length = kSequence;
  job.global_batch = tiny.global_batch;
  job.dtype = tiny.dtype;
  job.seed = 7;
  job.steps = tiny.steps;
  job.optimizer.learning_rate = 0.01;
  job.optimizer.clip = tiny.clip;
  return job;
}

std::vector<data::MicroBatch> micro_batches(const TinyCase& tiny, const layout::Layout& layout, int64_t dp_rank,
                                            int64_t step) {
  std::vector<data::MicroBatch> batches;
  const int64_t count = tiny.global_batch / (layout.dp * layout.mb);
  for (int64_t m = 0; m < count; ++m) {
    data::MicroBatch batch{at::empty({layout.mb, kSequence}, at::kLong), at::empty({layout.mb, kSequence}, at::kLong)};
    for (int64_t b = 0; b < layout.mb; ++b) {
      const int64_t sample = (dp_rank * count + m) * layout.mb + b;
      fill_sample(tiny, step, sample, batch.tokens_BS[b].data_ptr<int64_t>(), batch.targets_BS[b].data_ptr<int64_t>());
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

RunRecord reference_run(const TinyCase& tiny) {
  RunRecord record;
  layout::Layout alone;
  alone.mb = tiny.global_batch;
  comm::run_as_threads(1, kTimeout, [&](comm::GroupFactory& factory) {
    loop::RankTrainer trainer(training_job(tiny, alone), factory);
    trainer.initialize();
    for (int64_t step = 1; step <= tiny.steps; ++step) {
      const loop::StepResult result = trainer.step(micro_batches(tiny, alone, 0, step));
      StepRecord& row = record.emplace_back(StepRecord{result.loss, result.grad_norm, {}, {}});
      trainer.for_each_gradient([&](const model::Parameter& parameter, int64_t offset, const at::Tensor& gradient) {
        at::Tensor& whole = row.gradients[parameter.name];
        if (!whole.defined()) whole = at::zeros(parameter.local_shape, gradient.options());
        whole.view(-1).narrow(0, offset, gradient.numel()).copy_(gradient);
      });
      for (const model::Parameter* parameter : trainer.parameters()) {
        row.weights[parameter->name] = parameter->value.clone();
      }
    }
  });
  return record;
}

std::string compare_steps(loop::RankTrainer& trainer, const TinyCase& tiny, const layout::Layout& layout,
                          const RunRecord& reference, int64_t first_step, int64_t last_step, double tolerance,
                          int64_t rank) {
  std::string differences;
  for (int64_t step = first_step; step <= last_step; ++step) {
    const loop::StepResult result = trainer.step(micro_batches(tiny, layout, trainer.dp_rank(), step));
    const StepRecord& wanted = reference[static_cast<size_t>(step - 1)];
    Comparison comparison(tolerance, fmt::format("step {} rank {}", step, rank));
    comparison.number("loss", result.loss, wanted.loss);
    comparison.number("gradient norm", result.grad_norm, wanted.grad_norm);
    compare_step(trainer, wanted, comparison);
    differences += comparison.text();
  }
  return differences;
}

std::string compare_rank(const TinyCase& tiny, const layout::Layout& layout, const RunRecord& reference,
                         double tolerance, comm::GroupFactory& factory) {
  loop::RankTrainer trainer(training_job(tiny, layout), factory);
  trainer.initialize();
  return compare_steps(trainer, tiny, layout, reference, 1, tiny.steps, tolerance, factory.rank());
}

std::string compare_run(const TinyCase& tiny, const layout::Layout& layout, const RunRecord& reference,
                        double tolerance) {
  std::mutex mutex;
  std::string differences;
  comm::run_as_threads(layout.world_size(), kTimeout, [&](comm::GroupFactory& factory) {
    const std::string found = compare_rank(tiny, layout, reference, tolerance, factory);
    const std::lock_guard lock(mutex);
    differences += found;
  });
  return differences;
}

}  // namespace layline::trainer
