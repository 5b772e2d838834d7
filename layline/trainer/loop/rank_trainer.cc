#include "layline/trainer/loop/rank_trainer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <utility>

#include "layline/base/error.h"
#include "layline/layout/rank_map.h"
#include "layline/schedule/schedule.h"
#include "layline/trainer/model/head.h"
#include "layline/trainer/model/initialize.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/model/stage.h"
#include "layline/trainer/optimizer/adamw.h"
#include "layline/trainer/optimizer/flat_buffers.h"
#include "layline/trainer/optimizer/gradient_reducer.h"
#include "layline/trainer/optimizer/norm.h"
#include "layline/trainer/optimizer/segments.h"
#include "layline/trainer/pipeline/executor.h"
#include "layline/trainer/tally/tally.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::loop {

namespace {

using layout::Axis;
using model::mutated;
using model::Mutation;

kernels::RopeOptions rope_options(const spec::Model& model) {
  const spec::Rope& rope = model.rope;
  kernels::RopeOptions options{.theta = rope.theta};
  switch (rope.scaling) {
    case spec::RopeScaling::kNone:
      return options;
    case spec::RopeScaling::kLinear:
      options.linear_factor = rope.factor;
      return options;
    case spec::RopeScaling::kLlama3:
      options.llama3 = {rope.factor, rope.low_freq_factor, rope.high_freq_factor,
                        rope.original_max_position_embeddings};
      return options;
    case spec::RopeScaling::kOther:
      break;
  }
  throw base::InputError(
      "model " + model.name,
      fmt::format("has rotary scaling \"{}\"; the trainer has linear and llama3", rope.other_scaling));
}

// The groups that a rank is in.
struct Groups {
  std::unique_ptr<comm::Group> world, tp, dp, pp;
  std::unique_ptr<comm::Group> replicas;  // ranks that hold the same key-value heads; of one where heads suffice
  std::unique_ptr<comm::Group> tied;      // first and last stage, for the embedding that both hold; else null
};

Groups make_groups(const TrainingJob& job, const layout::RankMap& map, comm::GroupFactory& factory) {
  const int64_t rank = factory.rank();
  Groups groups;
  groups.world = factory.make_world();
  groups.tp = factory.make("tp", map.group(Axis::kTp, rank));
  groups.dp = factory.make("dp", map.group(Axis::kDp, rank));
  groups.pp = factory.make("pp", map.group(Axis::kPp, rank));

  const int64_t num_replicas = std::max<int64_t>(job.layout.tp / job.model.num_kv_heads, 1);
  const std::vector<int64_t> tp_ranks = map.group(Axis::kTp, rank);
  const auto first = tp_ranks.begin() + groups.tp->rank() / num_replicas * num_replicas;
  groups.replicas = factory.make("kv", {first, first + num_replicas});

  const std::vector<int64_t> pp_ranks = map.group(Axis::kPp, rank);
  const bool is_end = rank == pp_ranks.front() || rank == pp_ranks.back();
  if (job.model.tied_embeddings && job.layout.pp > 1 && is_end) {
    groups.tied = factory.make("tied", {pp_ranks.front(), pp_ranks.back()});
  }
  return groups;
}

// A stage as the executor sees it: knows the micro-batches of the step.
class StageChunk : public pipeline::Chunk {
 public:
  StageChunk(const spec::Model& model, const layout::Stage& part, const model::Shard& shard,
             const model::StageOptions& options, model::Context& context)
      : stage_(model, part, shard, options), context_(context) {}

  model::Stage& stage() { return stage_; }
  void begin(const std::vector<data::MicroBatch>& micro_batches, double loss_scale) {
    micro_batches_ = &micro_batches;
    loss_scale_ = loss_scale;
  }
  at::Tensor forward(int64_t micro_batch, const at::Tensor& input) override {
    const data::MicroBatch& batch = (*micro_batches_)[static_cast<size_t>(micro_batch)];
    model::Stage::Input stage_input;
    stage_input.hidden = input;
    stage_input.loss_scale = loss_scale_;
    if (stage_.has_embedding()) stage_input.tokens_SB = batch.tokens_BS.t();
    if (stage_.has_head()) stage_input.targets_SB = batch.targets_BS.t();
    if (mutated(Mutation::kMeanPerMicroBatch)) stage_input.loss_scale = mean_per_micro_batch(batch);
    return stage_.forward(stage_input, context_);
  }

 private:
  double mean_per_micro_batch(const data::MicroBatch& batch) const {
    const double count = (batch.targets_BS != model::kIgnoredTarget).sum().item<double>();
    return 1 / std::max(count, 1.0) / static_cast<double>(micro_batches_->size());
  }

  model::Stage stage_;
  model::Context& context_;
  const std::vector<data::MicroBatch>* micro_batches_ = nullptr;
  double loss_scale_ = 1;
};

at::TensorOptions tensor_options(const TrainingJob& job) {
  return at::TensorOptions().dtype(job.dtype).device(job.device);
}

kernels::RopeTable rope_table(const TrainingJob& job) {
  const tally::OwnerScope owner(tally::Owner::kBuffers);
  kernels::RopeTable table =
      kernels::make_rope_table(job.sequence_length, job.model.head_size, rope_options(job.model), job.dtype);
  return {.cos_SD2 = table.cos_SD2.to(job.device), .sin_SD2 = table.sin_SD2.to(job.device)};
}

// Targets that count; all of them where nobody can look.
double count_targets(const data::MicroBatch& batch) {
  const at::Tensor count = (batch.targets_BS != model::kIgnoredTarget).sum();
  return count.is_meta() ? static_cast<double>(batch.targets_BS.numel()) : count.item<double>();
}

pipeline::MessageShape message_shape(const TrainingJob& job) {
  const int64_t parts = job.layout.sp ? job.layout.tp : 1;
  return {{job.sequence_length / parts, job.layout.mb, job.model.hidden}, tensor_options(job)};
}

double all_sum(comm::Group& group, double value) {
  const at::Tensor tensor = at::full({1}, value, at::kDouble);
  group.all_reduce(tensor);
  return tensor.item<double>();
}

}  // namespace

struct RankTrainer::State {
  State(const TrainingJob& job, comm::GroupFactory& factory);

  void begin(const std::vector<data::MicroBatch>& micro_batches);
  double total_loss(double own);

  TrainingJob job;
  layout::RankMap map;
  int64_t rank;
  Groups groups;
  model::Context context;
  std::vector<std::unique_ptr<StageChunk>> chunks;
  std::unique_ptr<pipeline::Executor> executor;
  std::unique_ptr<optimizer::FlatBuffers> buffers;
  std::unique_ptr<optimizer::GradientReducer> reducer;
  std::unique_ptr<optimizer::ShardedAdamW> adamw;
  int64_t steps_done = 0;
};

RankTrainer::State::State(const TrainingJob& training_job, comm::GroupFactory& factory)
    : job(training_job), map(job.layout), rank(factory.rank()), groups(make_groups(job, map, factory)) {
  const layout::Layout& layout = job.layout;
  assert(factory.world_size() == layout.world_size());
  context.tp = groups.tp.get();
  context.sequence_parallel = layout.sp;
  context.attention = layout.attention;
  context.norm = layout.norm;
  context.recomputes_attention_and_norms = layout.checkpointing == layout::Checkpointing::kSelective;
  context.head_size = job.model.head_size;
  context.norm_epsilon = job.model.norm_epsilon;
  context.rope = rope_table(job);

  const model::Shard shard{layout.tp, groups.tp->rank(), layout.sp, job.model.tied_embeddings && layout.pp > 1};
  std::vector<std::vector<model::ParameterGroup*>> parameter_groups;
  std::vector<pipeline::Chunk*> runnable;
  for (int64_t chunk = 0; chunk < layout.vp; ++chunk) {
    layout::Stage part = job.stages[static_cast<size_t>(chunk * layout.pp + groups.pp->rank())];
    if (mutated(Mutation::kDropRemainderLayers)) part.num_layers = job.model.num_layers / layout.num_virtual_stages();
    chunks.push_back(std::make_unique<StageChunk>(
        job.model, part, shard, model::StageOptions{layout.checkpointing, layout.full_layers}, context));
    parameter_groups.push_back(chunks.back()->stage().groups());
    runnable.push_back(chunks.back().get());
  }
  const schedule::Schedule schedule = schedule::make_schedule(layout, job.num_micro_batches());
  executor = std::make_unique<pipeline::Executor>(schedule, groups.pp->rank(), std::move(runnable), *groups.pp,
                                                  message_shape(job), context.weight_gradients);
  const optimizer::ReductionGroups reduction{*groups.dp, *groups.tp, *groups.replicas, groups.tied.get()};
  buffers = std::make_unique<optimizer::FlatBuffers>(parameter_groups, layout.dp, tensor_options(job));
  reducer = std::make_unique<optimizer::GradientReducer>(*buffers, reduction, layout.zero);
  adamw = std::make_unique<optimizer::ShardedAdamW>(*buffers, *groups.dp, layout.zero, job.optimizer);
}

RankTrainer::RankTrainer(const TrainingJob& job, comm::GroupFactory& factory)
    : state_(std::make_unique<State>(job, factory)) {}
RankTrainer::~RankTrainer() = default;

void RankTrainer::initialize() {
  set_weights([seed = state_->job.seed](model::Parameter& parameter) { model::initialize(parameter, seed); });
}

void RankTrainer::set_weights(const std::function<void(model::Parameter&)>& fill) {
  for (const auto& chunk : state_->chunks) {
    for (model::Parameter& parameter : chunk->stage().parameters()) fill(parameter);
  }
  state_->adamw->weights_changed();
}

void RankTrainer::State::begin(const std::vector<data::MicroBatch>& micro_batches) {
  assert(static_cast<int64_t>(micro_batches.size()) == job.num_micro_batches());
  const tally::WorkScope work(tally::Work::kDataParallel);
  double num_tokens = 0;
  for (const data::MicroBatch& batch : micro_batches) num_tokens += count_targets(batch);
  const double total = mutated(Mutation::kMeanPerReplica) ? num_tokens * static_cast<double>(job.layout.dp)
                                                          : all_sum(*groups.dp, num_tokens);
  const double loss_scale = total > 0 ? 1 / total : 0;
  for (const auto& chunk : chunks) chunk->begin(micro_batches, loss_scale);
}

// The loss is on the last stage, the same on all of its tp ranks.
double RankTrainer::State::total_loss(double own) {
  const bool counts = groups.tp->rank() == 0 && groups.pp->rank() + 1 == job.layout.pp;
  const tally::WorkScope work(job.layout.pp > 1 ? tally::Work::kPipeline : tally::Work::kDataParallel);
  return all_sum(*groups.world, counts ? own : 0.0);
}

StepResult RankTrainer::step(const std::vector<data::MicroBatch>& micro_batches) {
  State& s = *state_;
  const int64_t step = s.steps_done + 1;
  s.begin(micro_batches);
  s.reducer->begin_step(s.job.num_micro_batches());
  const double loss = s.total_loss(s.executor->run());
  const tally::MomentScope reduction({tally::Phase::kReduction});
  s.reducer->finish();
  const double norm = optimizer::global_norm(*s.buffers, *s.reducer, *s.groups.world, step);
  if (!std::isfinite(loss)) {
    throw base::RunError(fmt::format("step {}", step), fmt::format("the loss is {}", loss));
  }
  const double rate = optimizer::learning_rate(s.job.optimizer, step, s.job.steps);
  const tally::MomentScope update({tally::Phase::kUpdate});
  const tally::WorkScope work(tally::Work::kOptimizer);
  s.adamw->step(*s.reducer, {step, rate, optimizer::clip_factor(norm, s.job.optimizer.clip)});
  s.steps_done = step;
  return {loss, norm, rate};
}

double RankTrainer::evaluate(const std::vector<data::MicroBatch>& micro_batches) {
  State& s = *state_;
  s.begin(micro_batches);
  return s.total_loss(s.executor->run_forward());
}

at::Tensor RankTrainer::logits(const at::Tensor& tokens_BS) {
  State& s = *state_;
  assert(s.job.layout.pp == 1);
  model::Stage::Input input;
  input.tokens_SB = tokens_BS.t();
  return s.chunks[0]->stage().logits(input, s.context).transpose(0, 1);
}

void RankTrainer::for_each_gradient(
    const std::function<void(const model::Parameter&, int64_t offset, const at::Tensor&)>& visit) const {
  const State& s = *state_;
  for (size_t i = 0; i < s.buffers->buckets().size(); ++i) {
    const optimizer::Bucket& bucket = s.buffers->buckets()[i];
    optimizer::for_each_segment(bucket, s.reducer->shard_offset(bucket), s.reducer->shard_size(bucket),
                                [&](const optimizer::Segment& segment) {
                                  visit(*segment.parameter, segment.in_parameter,
                                        s.reducer->shard(i).narrow(0, segment.in_range, segment.length));
                                });
  }
}

void RankTrainer::for_each_state(const std::function<void(const optimizer::OptimizerState&)>& visit) const {
  state_->adamw->for_each_state(visit);
}

void RankTrainer::state_changed(int64_t steps_done) {
  state_->adamw->masters_changed();
  state_->steps_done = steps_done;
}

int64_t RankTrainer::num_steps_done() const { return state_->steps_done; }
int64_t RankTrainer::dp_rank() const { return state_->groups.dp->rank(); }
int64_t RankTrainer::tp_rank() const { return state_->groups.tp->rank(); }
int64_t RankTrainer::pp_rank() const { return state_->groups.pp->rank(); }
comm::Group& RankTrainer::world() { return *state_->groups.world; }

std::vector<const model::Parameter*> RankTrainer::parameters() const {
  std::vector<const model::Parameter*> all;
  for (const auto& chunk : state_->chunks) {
    for (const model::Parameter& parameter : chunk->stage().parameters()) all.push_back(&parameter);
  }
  return all;
}

}  // namespace layline::trainer::loop
