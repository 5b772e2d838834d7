#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "layline/cost/attention.h"
#include "layline/cost/collective.h"
#include "layline/cost/gemm.h"
#include "layline/cost/tensor_parallel.h"
#include "tests/support/jobs.h"

namespace layline::cost {
namespace {

Machine a100() {
  const spec::Job job = test::make_job({});
  return Machine(job, spec::Coefficients{});
}

struct WaveCase {
  double m, n;
  int num_sms;
  double expected;
};

TEST(WaveEfficiency, CountsTilesAndWaves) {
  const WaveCase cases[] = {
      {128, 256, 1, 1.0},           // one tile on one SM
      {128 * 9, 256 * 12, 108, 1},  // 108 tiles, one full wave
      {128, 128, 108, 1.0 / 108},   // one tile on 108 SMs
      {129, 256, 1, 129.0 / 256},   // one row too many: a second row of tiles, or one taller tile
  };
  for (const WaveCase& c : cases) EXPECT_NEAR(wave_efficiency(c.m, c.n, c.num_sms), c.expected, 1e-12) << c.m;
}

RC_GTEST_PROP(WaveEfficiency, LiesBetweenNothingAndOne, ()) {
  const double m = *rc::gen::inRange(1, 100000), n = *rc::gen::inRange(1, 100000);
  const double efficiency = wave_efficiency(m, n, *rc::gen::inRange(1, 300));
  RC_ASSERT(efficiency > 0 && efficiency <= 1 + 1e-12);
}

TEST(Gemm, IsBoundByMemoryWhenThinAndByComputeWhenThick) {
  const Machine machine = a100();
  const double thin = gemm_seconds(machine, 8192, 8192, 32);
  EXPECT_NEAR(thin, (2 * 8192.0 * 32 + 8192.0 * 8192) * 2 / machine.memory_bytes_per_second, 1e-9 * thin);
  const double thick = gemm_seconds(machine, 16384, 16384, 16384);
  const double ideal = 2 * std::pow(16384.0, 3) / machine.gemm_flops_per_second;
  EXPECT_GT(thick, ideal);
  EXPECT_LT(thick, 1.1 * ideal);
}

TEST(GroupShape, PlacesAxesOnNodes) {
  struct Case {
    int64_t size, stride, per_node, nodes;
  };
  const Case cases[] = {{8, 1, 8, 1},   {4, 1, 4, 1}, {64, 1, 8, 8}, {32, 2, 4, 8},
                        {16, 8, 1, 16}, {2, 4, 2, 1}, {8, 16, 1, 8}};
  for (const Case& c : cases) {
    const GroupShape shape = group_shape(c.size, c.stride, 8);
    EXPECT_EQ(shape.per_node, c.per_node) << c.size << " by " << c.stride;
    EXPECT_EQ(shape.nodes, c.nodes) << c.size << " by " << c.stride;
  }
}

TEST(Collectives, AllReduceIsReduceScatterAndAllGatherWithoutOneLatency) {
  const Machine machine = a100();
  const GroupShape group = group_shape(64, 1, 8);
  const LinkUse use;
  const double bytes = 1e9;
  const double all_reduce = all_reduce_seconds(machine, group, use, bytes);
  const double both =
      reduce_scatter_seconds(machine, group, use, bytes) + all_gather_seconds(machine, group, use, bytes);
  const double latency = use.latency_seconds + 3 * machine.intra_latency_seconds + 3 * machine.inter_latency_seconds;
  EXPECT_NEAR(all_reduce, both - latency, 1e-9 * both);
  EXPECT_EQ(all_reduce_seconds(machine, group_shape(1, 1, 8), use, bytes), 0);
}

TEST(Collectives, RingsShareTheNodesNetworkCards) {
  const Machine machine = a100();
  const LinkUse use{1, 1, 0, 0};
  const double alone = ring_bytes_per_second(machine, group_shape(64, 1, 8), use);  // one ring, eight members a node
  const double shared = ring_bytes_per_second(machine, group_shape(8, 8, 8), use);  // eight rings on each node
  EXPECT_NEAR(alone / shared, 8, 1e-9);
}

TEST(TensorParallel, MovesTheSameBytesWithAndWithoutSequenceParallelismForward) {
  const spec::Job job = test::make_job({});
  spec::Coefficients no_latency;
  no_latency.tp_latency_seconds = 0;
  Machine machine(job, no_latency);
  machine.intra_latency_seconds = 0;
  memory::LayerShape plain{.mb = 1, .tp = 8};
  memory::LayerShape sequence = plain;
  sequence.sp = true;
  EXPECT_NEAR(tensor_parallel_seconds(job, machine, plain, Pass::kForward),
              tensor_parallel_seconds(job, machine, sequence, Pass::kForward), 1e-12);
  EXPECT_EQ(tensor_parallel_seconds(job, machine, {.mb = 1, .tp = 1}, Pass::kForward), 0);
}

TEST(Attention, FlashSkipsTheMaskedHalfAndPlainDoesNot) {
  const spec::Job job = test::make_job({.sequence_length = 8192});
  const Machine machine(job, spec::Coefficients{});
  const auto forward = [&](layout::AttentionKernel kernel) {
    return attention_seconds(job, machine, {.mb = 1, .tp = 2, .attention = kernel}).forward;
  };
  EXPECT_LT(forward(layout::AttentionKernel::kFlash2), forward(layout::AttentionKernel::kFlash1));
  EXPECT_LT(forward(layout::AttentionKernel::kFlash1), forward(layout::AttentionKernel::kFusedSoftmax));
  EXPECT_LT(forward(layout::AttentionKernel::kFusedSoftmax), forward(layout::AttentionKernel::kUnfused));
}

}  // namespace
}  // namespace layline::cost
