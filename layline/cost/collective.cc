#include "layline/cost/collective.h"

#include <algorithm>
#include <cmath>

namespace layline::cost {
namespace {

double latency_of(const Machine& machine, const GroupShape& group, const LinkUse& use) {
  // A tree inside the node, one across nodes: NCCL picks the lower of ring and tree latency.
  const double intra_hops = std::log2(static_cast<double>(std::max<int64_t>(1, group.per_node)));
  const double inter_hops = std::log2(static_cast<double>(std::max<int64_t>(1, group.nodes)));
  return use.latency_seconds + intra_hops * machine.intra_latency_seconds + inter_hops * machine.inter_latency_seconds;
}

double moved_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes) {
  if (group.size <= 1) return 0;
  const double n = static_cast<double>(group.size);
  return bytes * (n - 1) / n / ring_bytes_per_second(machine, group, use) + latency_of(machine, group, use);
}

}  // namespace

GroupShape group_shape(int64_t size, int64_t stride, int64_t gpus_per_node) {
  const int64_t per_node = std::clamp<int64_t>(gpus_per_node / std::max<int64_t>(1, stride), 1, size);
  return {size, per_node, (size + per_node - 1) / per_node};
}

double ring_bytes_per_second(const Machine& machine, const GroupShape& group, const LinkUse& use) {
  const double intra = machine.intra_bytes_per_second * use.intra_efficiency;
  if (group.nodes <= 1) return intra;
  const double members = static_cast<double>(group.per_node);
  const double share = machine.inter_bytes_per_second_per_node * members / static_cast<double>(machine.gpus_per_node);
  const double cap = machine.inter_bytes_per_second_per_gpu * members;
  const double fall = use.node_exponent == 0 ? 1 : std::pow(static_cast<double>(group.nodes), -use.node_exponent);
  const double inter = std::min(share, cap) * use.inter_efficiency * fall;
  return members > 1 ? std::min(intra, inter) : inter;
}

double all_reduce_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes) {
  return moved_seconds(machine, group, use, 2 * bytes);
}

double reduce_scatter_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes) {
  return moved_seconds(machine, group, use, bytes);
}

double all_gather_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes) {
  return moved_seconds(machine, group, use, bytes);
}

double send_seconds(const Machine& machine, int64_t stride, double efficiency, double latency_seconds, double bytes) {
  const bool inside = stride < machine.gpus_per_node;
  const double rate =
      inside ? machine.intra_bytes_per_second
             : std::min(machine.inter_bytes_per_second_per_node / static_cast<double>(machine.gpus_per_node),
                        machine.inter_bytes_per_second_per_gpu);
  return latency_seconds + bytes / (rate * efficiency);
}

}  // namespace layline::cost
