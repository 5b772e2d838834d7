#include "layline/cost/tensor_parallel.h"

namespace layline::cost {

LinkUse tensor_parallel_links(const Machine& machine) {
  return {machine.k.tp_intra_efficiency, machine.k.tp_inter_efficiency, 0, machine.k.tp_latency_seconds};
}

double tensor_parallel_seconds(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape,
                               Pass pass) {
  if (shape.tp <= 1) return 0;
  const GroupShape group = group_shape(shape.tp, 1, machine.gpus_per_node);
  const LinkUse use = tensor_parallel_links(machine);
  const double tokens =
      static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(shape.cp);
  const double bytes = tokens * static_cast<double>(job.model.hidden) * 2;
  double seconds = 0;
  if (shape.sp) {
    const double gathers = pass == Pass::kForward ? 2 : 4;
    seconds = gathers * all_gather_seconds(machine, group, use, bytes) +
              2 * reduce_scatter_seconds(machine, group, use, bytes);
  } else {
    seconds = 2 * all_reduce_seconds(machine, group, use, bytes);
  }
  return job.engine.overlaps_tensor_parallel ? seconds * (1 - machine.k.tp_overlap) : seconds;
}

}  // namespace layline::cost
