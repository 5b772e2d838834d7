// Seconds of collectives over the ranks of one mesh axis, by link (docs/model.md, C10 and C11).
//
// A group of n ranks has `per_node` members on each of `nodes` nodes. A ring enters and leaves each node once, and as
// many rings share the node's NICs as groups of the axis live on a node, so one ring gets
// per_node/gpus_per_node of the node's bandwidth.
#pragma once

#include <cstdint>

#include "layline/cost/machine.h"

namespace layline::cost {

struct GroupShape {
  int64_t size = 1;
  int64_t per_node = 1;
  int64_t nodes = 1;
};

// The groups of an axis with `size` ranks, `stride` apart, on nodes of `gpus_per_node`.
GroupShape group_shape(int64_t size, int64_t stride, int64_t gpus_per_node);

// How well the links are used: fractions of their peaks, and the fixed cost of one collective.
struct LinkUse {
  double intra_efficiency = 0.8;
  double inter_efficiency = 0.7;
  double node_exponent = 0;  // bandwidth between nodes falls as nodes^-exponent
  double latency_seconds = 20e-6;
};

// Bytes a second that one rank's ring moves (C10).
double ring_bytes_per_second(const Machine& machine, const GroupShape& group, const LinkUse& use);

// `bytes` is the full tensor: all-reduce moves 2(n-1)/n of it around a ring (or up and down a tree), reduce-scatter
// and all-gather (n-1)/n (C11). 0 for groups of one.
double all_reduce_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes);
double reduce_scatter_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes);
double all_gather_seconds(const Machine& machine, const GroupShape& group, const LinkUse& use, double bytes);

// One message between neighbours `stride` ranks apart (C18).
double send_seconds(const Machine& machine, int64_t stride, double efficiency, double latency_seconds, double bytes);

}  // namespace layline::cost
