#include "layline/trainer/comm/fake_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "layline/trainer/comm/scratch.h"

namespace layline::trainer::comm {
namespace {

TEST(FakeGroup, ReturnsAtOnceOnTheMetaDeviceAndCountsCallsAndBytes) {
  const auto traffic = std::make_shared<Traffic>();
  FakeFactory factory(1000, 1024, traffic);
  std::vector<int64_t> ranks(512);
  std::iota(ranks.begin(), ranks.end(), 512);
  const auto dp = factory.make("dp", ranks);
  EXPECT_EQ(dp->rank(), 488);
  EXPECT_EQ(dp->size(), 512);
  const auto meta = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  at::Tensor whole = at::empty({512 * 1000}, meta), part = at::empty({1000}, meta);
  dp->reduce_scatter_async(whole, part)->wait();
  dp->reduce_scatter(whole, part);
  dp->all_gather(part, whole);
  dp->all_reduce(part);
  dp->barrier();
  dp->send(part, 3, 0);
  dp->receive(part, 3, 0)->wait();
  dp->flush_sends();
  EXPECT_EQ(traffic->of("dp", "reduce_scatter").num_calls, 2);
  EXPECT_EQ(traffic->of("dp", "reduce_scatter").bytes, 2 * 4 * 512'000);
  EXPECT_EQ(traffic->of("dp", "all_gather").bytes, 4 * 512'000);
  EXPECT_EQ(traffic->of("dp", "all_reduce").bytes, 4000);
  EXPECT_EQ(traffic->of("dp", "send").bytes, 4000);
  EXPECT_EQ(traffic->of("dp", "receive").num_calls, 1);
  EXPECT_EQ(traffic->of("dp", "barrier").num_calls, 1);
  EXPECT_EQ(traffic->of("tp", "all_reduce").num_calls, 0);
}

TEST(FakeGroup, TakesTheScratchMemoryOfARealOne) {
  const at::Tensor small = at::ones({100}), large = at::ones({8'000'000});
  EXPECT_EQ(scratch_bytes({Operation::kAllReduce, small, small}, 4), 4 * 400);
  EXPECT_EQ(scratch_bytes({Operation::kReduceScatter, small, small}, 4), 3 * 100);
  EXPECT_EQ(scratch_bytes({Operation::kAllReduce, large, large}, 4), 3 * 3 * kSegmentBytes);
  EXPECT_EQ(scratch_bytes({Operation::kAllGather, small, large}, 4), 0);
  EXPECT_EQ(scratch_bytes({Operation::kAllReduce, large, large}, 1), 0);
}

TEST(FakeGroup, RefusesWhatRealGroupsRefuse) {
  const auto group = make_fake_group("tp", 0, 4);
  EXPECT_THROW(group->all_reduce(at::ones({2, 3}).t()), std::logic_error);
  EXPECT_THROW(group->all_gather(at::ones({2}), at::ones({6})), std::logic_error);
}

}  // namespace
}  // namespace layline::trainer::comm
