#include "layline/cost/data_parallel.h"

#include <algorithm>

#include "layline/cost/collective.h"
#include "layline/cost/measured_layer.h"
#include "layline/memory/stage_memory.h"

namespace layline::cost {
namespace {

// Ranks between neighbours that share weights: tp is fastest, and pp comes before dp in engines that have dp slowest.
int64_t replica_stride(const spec::Job& job, const layout::Layout& layout) {
  return layout.tp * (job.engine.rank_order_tp_cp_dp_pp ? 1 : layout.pp);
}

LinkUse data_parallel_links(const Machine& machine, double collectives) {
  return {machine.k.dp_intra_efficiency, machine.k.dp_inter_efficiency, machine.k.dp_node_exponent,
          machine.k.dp_latency_seconds * std::max(1.0, collectives)};
}

double exposed(double traffic, double hiding, double overlap) { return std::max(0.0, traffic - overlap * hiding); }

// Gathers and scatters of every micro-batch beside its compute, block by block.
double sharded_seconds(const spec::Job& job, const Machine& machine, const layout::Layout& layout,
                       const DataParallelInput& stage) {
  const int64_t shard = memory::shard_size(layout);
  const GroupShape group = group_shape(shard, replica_stride(job, layout), machine.gpus_per_node);
  const LinkUse use = data_parallel_links(machine, stage.layers);
  const double gather = all_gather_seconds(machine, group, use, stage.parameters * job.engine.parameter_gather_bytes);
  const double scatter = reduce_scatter_seconds(machine, group, use, stage.parameters * job.engine.reduction_bytes);
  const double overlap = machine.k.dp_overlap;
  double forward = 0, backward = scatter;
  if (layout.zero == 3) {
    forward = gather;
    backward += job.engine.reshard_after_forward ? gather : 0;
  }
  double seconds = stage.micro_batches * (exposed(forward, stage.forward_seconds, overlap) +
                                          exposed(backward, stage.backward_seconds, overlap));
  if (layout.zero == 2) seconds += gather;
  const int64_t replicas = layout.dp * layout.cp / std::max<int64_t>(1, shard);
  if (layout.hsdp > 0 && replicas > 1) {
    const GroupShape across = group_shape(replicas, replica_stride(job, layout) * shard, machine.gpus_per_node);
    const double bytes = stage.parameters / static_cast<double>(shard) * job.engine.reduction_bytes;
    seconds += all_reduce_seconds(machine, across, data_parallel_links(machine, 1), bytes);
  }
  return seconds;
}

}  // namespace

double data_parallel_seconds(const spec::Job& job, const Machine& machine, const layout::Layout& layout,
                             const DataParallelInput& stage) {
  const int64_t replicas = layout.dp * layout.cp;
  if (replicas <= 1) return 0;
  if (machine.measured) {
    return measured_data_parallel_seconds(job, *machine.measured, layout, stage.parameters, stage.layers);
  }
  if (layout.zero >= 2) return sharded_seconds(job, machine, layout, stage);
  const spec::Engine& engine = job.engine;
  const GroupShape group = group_shape(replicas, replica_stride(job, layout), machine.gpus_per_node);
  const LinkUse use = data_parallel_links(machine, 1);
  const bool scatter = layout.zero == 1 && engine.reduction == spec::GradientReduction::kReduceScatter;
  const double bytes = stage.parameters * engine.reduction_bytes;
  const double reduce =
      scatter ? reduce_scatter_seconds(machine, group, use, bytes) : all_reduce_seconds(machine, group, use, bytes);
  const double gather =
      layout.zero == 1 ? all_gather_seconds(machine, group, use, stage.parameters * engine.parameter_gather_bytes) : 0;
  const double overlap = machine.k.dp_overlap;
  const double local = machine.k.dp_local_traffic * stage.parameters / machine.memory_bytes_per_second;
  return exposed(reduce, engine.overlaps_gradient_reduction ? stage.backward_seconds : 0, overlap) +
         exposed(gather, engine.overlaps_parameter_gather ? stage.forward_seconds : 0, overlap) + local;
}

}  // namespace layline::cost
