#include "layline/cost/step.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "layline/cost/collective.h"
#include "layline/cost/data_parallel.h"
#include "layline/cost/measured_layer.h"
#include "layline/cost/pipeline.h"
#include "layline/memory/parameters.h"
#include "layline/spec/measured_names.h"

namespace layline::cost {
namespace {

struct ShapeHash {
  size_t operator()(const memory::LayerShape& s) const {
    size_t hash = static_cast<size_t>(s.mb);
    const auto mix = [&](size_t v) { hash = hash * 1099511628211ULL + v; };
    mix(static_cast<size_t>(s.tp));
    mix(static_cast<size_t>(s.cp));
    mix(static_cast<size_t>(s.sp));
    mix(static_cast<size_t>(s.checkpointing));
    mix(static_cast<size_t>(s.attention));
    mix(static_cast<size_t>(s.norm));
    mix(static_cast<size_t>(s.pipeline_across_nodes));
    return hash ^ (hash >> 29);
  }
};

// All that depends on a LayerShape only.
struct ShapePrice {
  LayerCost layer;
  EndCost embedding;
  EndCost head;
  memory::LayerActivations activations;
};

// One group's times for one micro-batch, all chunks.
struct GroupTimes {
  PassSeconds forward, backward, recompute;
  double send = 0;
  double weight_gradient = 0;
  double forward_total() const { return forward.total() + send / 2; }
  double backward_total() const { return backward.total() + recompute.total() + send / 2; }
  double total() const { return forward_total() + backward_total(); }
};

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

}  // namespace

struct Pricer::State {
  State(std::shared_ptr<const spec::Job> j, const spec::Coefficients& k)
      : owner(std::move(j)), job(*owner), machine(job, k) {}

  std::shared_ptr<const spec::Job> owner;
  const spec::Job& job;
  Machine machine;
  std::unordered_map<memory::LayerShape, ShapePrice, ShapeHash> shapes;
  std::vector<memory::StageGroup> groups;
  PipelineRuns runs;

  const ShapePrice& shape_price(const memory::LayerShape& shape);
  void group(const layout::Layout& layout, const ShapePrice& shape);
  int64_t micro_batches(const layout::Layout& layout) const { return job.global_batch / (layout.dp * layout.mb); }
  double send_seconds_of(const layout::Layout& layout, const memory::StageGroup& group) const;
  double stall_seconds(const layout::Layout& layout) const;
  double recomputed_share(const layout::Layout& layout, const memory::StageGroup& group) const;
  GroupTimes times(const layout::Layout& layout, const memory::StageGroup& group, const ShapePrice& shape) const;
  double peak_bytes(const layout::Layout& layout, const ShapePrice& shape) const;
  // Returns the parameters of the largest stage.
  double add_pipeline(const layout::Layout& layout, const ShapePrice& shape, StepPrice& price);
  void add_memory(double peak, double parameters, StepPrice& price) const;
};

const ShapePrice& Pricer::State::shape_price(const memory::LayerShape& shape) {
  const auto found = shapes.find(shape);
  if (found != shapes.end()) return found->second;
  ShapePrice price{layer_cost(job, machine, shape), embedding_cost(job, machine, shape), head_cost(job, machine, shape),
                   memory::layer_activations(job, machine.k, shape)};
  return shapes.emplace(shape, price).first->second;
}

void Pricer::State::group(const layout::Layout& layout, const ShapePrice& shape) {
  if (layout.split == layout::SplitKind::kThreshold) {
    const spec::Model& model = job.model;
    const int64_t layer = model.hidden * (2 * model.attention_width() + 2 * model.kv_width() +
                                          model.num_mlp_matrices() * model.ffn_hidden);
    const double head = static_cast<double>(model.vocab * model.hidden) / static_cast<double>(layer);
    memory::group_stages(layout, model.num_layers, {0, head}, groups);
    return;
  }
  const double layer = shape.layer.forward.total() + shape.layer.backward.total() + shape.layer.recompute.total();
  const auto in_layers = [&](const EndCost& end) { return (end.forward.total() + end.backward.total()) / layer; };
  memory::group_stages(layout, job.model.num_layers, {in_layers(shape.embedding), in_layers(shape.head)}, groups);
}

// A stage sends and receives once a pass and neighbour, for each of its chunks; engines that overlap them only pay the
// fixed cost.
double Pricer::State::send_seconds_of(const layout::Layout& layout, const memory::StageGroup& group) const {
  if (layout.pp <= 1) return 0;
  const bool end = layout.vp == 1 && (group.has_embedding || group.has_head);
  const double transfers = static_cast<double>(layout.vp) * (end ? 2 : 4);
  const double tokens =
      static_cast<double>(layout.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(layout.cp);
  const double share = layout.sp ? static_cast<double>(layout.tp) : 1;
  const double bytes = tokens * static_cast<double>(job.model.hidden) * 2 / share;
  if (const Measured* measured = machine.measured.get()) {
    const double size = bytes / 2 * measured->element_bytes();
    return transfers * measured->collective(spec::measured::kSend, measured->precision(), 2, size);
  }
  const int64_t stride = layout.tp * layout.cp * (job.engine.rank_order_tp_cp_dp_pp ? layout.dp : 1);
  const double latency = machine.k.p2p_latency_seconds;
  const double one =
      send_seconds(machine, stride, machine.k.p2p_efficiency, latency, job.engine.overlaps_p2p ? 0 : bytes);
  return transfers * (one + stall_seconds(layout));
}

// Measured with nanotron on EFA: from some number of nodes on, or when each tp group spans several, every send waits.
double Pricer::State::stall_seconds(const layout::Layout& layout) const {
  constexpr double kSteepness = 8;
  constexpr double kNodesForATensorNode = 16;
  const double gpn = static_cast<double>(machine.gpus_per_node);
  const double nodes = static_cast<double>(layout.world_size()) / gpn;
  const double tensor_nodes = std::ceil(static_cast<double>(layout.tp) / gpn);
  const double crowd = std::max(nodes, tensor_nodes * kNodesForATensorNode) / machine.k.p2p_stall_nodes;
  if (nodes <= 1) return 0;
  return machine.k.p2p_stall_seconds / (1 + std::pow(crowd, -kSteepness));
}

double Pricer::State::recomputed_share(const layout::Layout& layout, const memory::StageGroup& group) const {
  if (layout.checkpointing == layout::Checkpointing::kNone) return 0;
  if (layout.checkpointing == layout::Checkpointing::kSelective || layout.full_layers == 0) return 1;
  const double chunk = static_cast<double>(group.num_layers) / static_cast<double>(layout.vp);
  return std::min(1.0, static_cast<double>(layout.full_layers) / chunk);
}

GroupTimes Pricer::State::times(const layout::Layout& layout, const memory::StageGroup& group,
                                const ShapePrice& shape) const {
  const double layers = static_cast<double>(group.num_layers);
  const double recomputed = recomputed_share(layout, group);
  GroupTimes t;
  t.forward = shape.layer.forward * layers;
  t.backward = shape.layer.backward * layers;
  t.recompute = shape.layer.recompute * (layers * recomputed);
  t.weight_gradient = shape.layer.weight_gradient * layers;
  if (group.has_embedding) {
    t.forward += shape.embedding.forward;
    t.backward += shape.embedding.backward;
  }
  if (group.has_head) {
    t.forward += shape.head.forward;
    t.backward += shape.head.backward;
  }
  if (!machine.measured) t.forward.launch += machine.k.micro_batch_seconds;
  if (!machine.measured && layout.checkpointing == layout::Checkpointing::kFull) {
    t.recompute.launch += machine.k.recompute_micro_batch_seconds;
  }
  t.send = send_seconds_of(layout, group);
  return t;
}

double Pricer::State::peak_bytes(const layout::Layout& layout, const ShapePrice& shape) const {
  double peak = 0;
  for (const memory::StageGroup& g : groups) {
    const double bytes =
        memory::stage_memory(job, machine.k, layout, g, shape.activations, micro_batches(layout)).total();
    peak = std::max(peak, bytes);
  }
  return peak;
}

double Pricer::State::add_pipeline(const layout::Layout& layout, const ShapePrice& shape, StepPrice& price) {
  const int64_t m = micro_batches(layout);
  GroupTimes slowest;
  runs.clear();
  double data_parallel = 0, parameters = 0, layers = 0, work = 0;
  for (const memory::StageGroup& g : groups) {
    const GroupTimes t = times(layout, g, shape);
    runs.push_back({{t.forward_total(), t.backward_total(), t.weight_gradient}, g.num_ranks});
    if (t.total() > slowest.total()) slowest = t;
    work += t.total() * static_cast<double>(g.num_ranks) / static_cast<double>(layout.pp);
    const double n = memory::stage_parameters(job.model, layout.tp, g);
    parameters = std::max(parameters, n);
    layers = std::max(layers, static_cast<double>(g.num_layers));
    data_parallel =
        std::max(data_parallel, data_parallel_seconds(job, machine, layout,
                                                      {n, static_cast<double>(g.num_layers), static_cast<double>(m),
                                                       t.forward_total(), t.backward_total()}));
  }
  const double steps = static_cast<double>(m);
  double total = pipeline_seconds(layout.schedule, layout.pp, layout.vp, m, runs);
  // Ranks that share a core run faster while others wait.
  if (machine.measured) total = std::max(total / machine.measured->sharing(), steps * work);
  // The slowest stage's own times are those of a core that all share: when that is never so, it needs less.
  const double weight = steps * std::min(1.0, total / (steps * slowest.total()));
  price[Kind::kGemm] = weight * (slowest.forward.gemm + slowest.backward.gemm);
  price[Kind::kAttention] = weight * (slowest.forward.attention + slowest.backward.attention);
  price[Kind::kMemoryBound] = weight * (slowest.forward.memory_bound + slowest.backward.memory_bound);
  price[Kind::kLaunch] = weight * (slowest.forward.launch + slowest.backward.launch);
  price[Kind::kRecompute] = weight * slowest.recompute.total();
  price[Kind::kTensorParallel] = weight * (slowest.forward.tensor_parallel + slowest.backward.tensor_parallel);
  price[Kind::kContextParallel] = weight * (slowest.forward.context_parallel + slowest.backward.context_parallel);
  price[Kind::kPipelineSend] = weight * slowest.send;
  price[Kind::kBubble] = std::max(0.0, total - weight * slowest.total());
  price[Kind::kDataParallel] = data_parallel;
  const double shard = layout.zero >= 1 ? static_cast<double>(memory::shard_size(layout)) : 1;
  if (const Measured* measured = machine.measured.get()) {
    price[Kind::kOptimizer] = measured_optimizer_seconds(*measured, parameters, shard);
    price[Kind::kOther] = machine.k.measured_step_seconds;
    return parameters;
  }
  price[Kind::kOptimizer] = machine.k.optimizer_traffic * parameters / shard / machine.memory_bytes_per_second +
                            machine.k.optimizer_latency_seconds * layers;
  price[Kind::kOther] = machine.k.step_seconds;
  return parameters;
}

// Where the step's own buffers do not fit beside what the passes left in the allocator, it frees and asks again for
// each of them, so the cost goes with the parameters of the rank and their reduction.
void Pricer::State::add_memory(double peak, double parameters, StepPrice& price) const {
  price.peak_memory_bytes = peak;
  price.capacity_bytes = job.cluster.gpu.memory_bytes;
  price.fits = peak <= price.capacity_bytes;
  const double sigma = job.calibration.memory_relative_sigma * peak;
  price.fit_probability = normal_cdf((price.capacity_bytes - peak) / sigma);
  constexpr double kWidth = 0.04;  // of the capacity: fragmentation blurs the edge
  const double over = peak + machine.k.pressure_step_bytes * parameters - price.capacity_bytes;
  const double use = 1 / (1 + std::exp(-over / (kWidth * price.capacity_bytes)));
  price[Kind::kMemoryPressure] = use * (machine.k.pressure_seconds * parameters / 1e9 +
                                        machine.k.pressure_reduction_share * price[Kind::kDataParallel]);
}

Pricer::Pricer(const spec::Job& job) : Pricer(std::make_shared<const spec::Job>(job), job.calibration.coefficients()) {}
Pricer::Pricer(std::shared_ptr<const spec::Job> job, const spec::Coefficients& coefficients)
    : state_(std::make_unique<State>(std::move(job), coefficients)) {}
Pricer::~Pricer() = default;
Pricer::Pricer(Pricer&&) noexcept = default;

StepPrice Pricer::price(const layout::Layout& layout) {
  const ShapePrice& shape = state_->shape_price(memory::layer_shape(layout, state_->machine.gpus_per_node));
  state_->group(layout, shape);
  StepPrice price;
  const double parameters = state_->add_pipeline(layout, shape, price);
  state_->add_memory(state_->peak_bytes(layout, shape), parameters, price);
  for (const double seconds : price.seconds) price.step_seconds += seconds;
  return price;
}

double Pricer::peak_memory_bytes(const layout::Layout& layout) {
  const ShapePrice& shape = state_->shape_price(memory::layer_shape(layout, state_->machine.gpus_per_node));
  state_->group(layout, shape);
  return state_->peak_bytes(layout, shape);
}

std::vector<StagePrice> Pricer::stages(const layout::Layout& layout) {
  const ShapePrice& shape = state_->shape_price(memory::layer_shape(layout, state_->machine.gpus_per_node));
  state_->group(layout, shape);
  std::vector<StagePrice> stages;
  for (const memory::StageGroup& g : state_->groups) {
    const GroupTimes t = state_->times(layout, g, shape);
    for (int64_t i = 0; i < g.num_ranks; ++i) {
      memory::StageGroup one = g;
      one.first_rank = g.first_rank + i;
      one.num_ranks = 1;
      stages.push_back({one, t.forward_total(), t.backward_total(),
                        memory::stage_memory(state_->job, state_->machine.k, layout, one, shape.activations,
                                             state_->micro_batches(layout))});
    }
  }
  return stages;
}

memory::EndCosts Pricer::end_costs(const layout::Layout& layout) {
  const ShapePrice& shape = state_->shape_price(memory::layer_shape(layout, state_->machine.gpus_per_node));
  const double layer = shape.layer.forward.total() + shape.layer.backward.total() + shape.layer.recompute.total();
  return {(shape.embedding.forward.total() + shape.embedding.backward.total()) / layer,
          (shape.head.forward.total() + shape.head.backward.total()) / layer};
}

const Machine& Pricer::machine() const { return state_->machine; }

// A machine's cores are busy however many ranks divide them.
double peak_flops_per_second(const spec::Job& job) {
  const auto& measured = job.cluster.measured;
  const int64_t devices = measured && job.num_gpus <= job.cluster.gpus_per_node ? measured->num_cores : job.num_gpus;
  return job.cluster.gpu.peak_flops_per_second(job.precision) * static_cast<double>(devices);
}

double model_flops_utilization(const spec::Job& job, double step_seconds) {
  const double flops = job.model.flops_per_token(job.sequence_length) * job.tokens_per_step();
  return flops / (step_seconds * peak_flops_per_second(job));
}

}  // namespace layline::cost
