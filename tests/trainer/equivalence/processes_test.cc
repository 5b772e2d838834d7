// The comparison again with ranks as real processes over TCP.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/trainer/comm/gloo_group.h"
#include "layline/trainer/comm/rendezvous.h"
#include "tests/trainer/comm/forked_ranks.h"
#include "tiny_run.h"

namespace layline::trainer {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);
constexpr double kTolerance = 1e-10;

struct Case {
  const char* name;
  const char* layout;
  TinyCase tiny = {};
};

class Processes : public testing::TestWithParam<Case> {};

TEST_P(Processes, TrainAsOneRankDoes) {
  const Case& test = GetParam();
  const layout::Layout layout = layout::parse_layout(test.layout);
  const int64_t size = layout.world_size();
  // The children compute the reference themselves: a process that has computed with threads must not be forked.
  comm::ForkedRanks ranks(size, [&](int64_t rank, int port) {
    at::set_num_threads(1);
    const RunRecord reference = reference_run(test.tiny);
    comm::RunStore store({.rank = rank, .world_size = size, .port = port, .timeout = kTimeout});
    comm::GlooFactory factory(store.store(), rank, size, {.timeout = kTimeout, .address = store.address()});
    const std::string differences = compare_rank(test.tiny, layout, reference, kTolerance, factory);
    factory.make_world()->barrier();
    return differences;
  });
  for (int64_t rank = 0; rank < size; ++rank) {
    const comm::ForkedRanks::Outcome outcome = ranks.wait(rank, 60);
    EXPECT_TRUE(outcome.exited) << outcome.text;
    EXPECT_EQ(outcome.text, "") << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Processes,
                         testing::Values(Case{"Dp2", "dp2 tp1 pp1 mb1"}, Case{"Dp3Zero0", "dp3 tp1 pp1 mb2 zero0"},
                                         Case{"Tp2", "dp1 tp2 pp1 mb2"}, Case{"Tp2Sp", "dp1 tp2 pp1 mb2 sp"},
                                         Case{"Tp4Grouped", "dp1 tp4 pp1 mb3", {.num_kv_heads = 2}},
                                         Case{"Pp2", "dp1 tp1 pp2 mb1"},
                                         Case{"Pp4ZeroBubble", "dp1 tp1 pp4 mb1 sched=zb"},
                                         Case{"Pp2Interleaved", "dp1 tp1 pp2 mb1 vp2 sched=interleaved"},
                                         Case{"Pp3Gpipe", "dp1 tp1 pp3 mb2 sched=gpipe", {.num_layers = 5}},
                                         Case{"Pp2Tied", "dp1 tp1 pp2 mb2", {.tied = true}},
                                         Case{"Dp2Tp2Full", "dp2 tp2 pp1 mb1 sp ckpt=full"},
                                         Case{"Dp2Pp2Selective", "dp2 tp1 pp2 mb1 ckpt=selective"},
                                         Case{"Everything",
                                              "dp2 tp2 pp2 mb1 vp2 sp ckpt=full:1 sched=interleaved",
                                              {.num_layers = 5, .num_kv_heads = 2, .tied = true}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace layline::trainer
