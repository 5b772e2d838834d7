// That what is measured is what training does.
#include "layline/trainer/measure/operation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "layline/machine/plan.h"
#include "layline/machine/probe.h"
#include "layline/spec/measured_names.h"
#include "layline/trainer/comm/fake_group.h"

namespace layline::trainer::measure {
namespace {

namespace m = spec::measured;

constexpr double kHidden = 256, kTokens = 64;

// What one call of a layer on two ranks asks of its group.
comm::Traffic traffic_of(std::string_view what) {
  const auto traffic = std::make_shared<comm::Traffic>();
  comm::FakeFactory factory(0, 2, traffic);
  const at::NoGradGuard no_grad;
  const Operation operation = make_operation({m::name(what, spec::Precision::kBf16, 2), {kHidden, kTokens}}, factory);
  if (operation.prepare) operation.prepare(0);
  operation.run(0);
  return *traffic;
}

int64_t calls(const comm::Traffic& traffic, const std::string& function) {
  return traffic.of("probe", function).num_calls;
}

TEST(Layers, ThatAreSplitSumWhatTheyComputed) {
  const comm::Traffic traffic = traffic_of(m::kSplitForward);
  const int64_t num_layers = machine::probe_model(static_cast<int64_t>(kHidden)).num_layers;
  EXPECT_EQ(calls(traffic, "all_reduce"), 2 * num_layers);  // behind attention and behind the feed-forward
  EXPECT_EQ(calls(traffic, "all_gather"), 0);
}

TEST(Layers, ThatShardTheSequenceGatherAndScatterAllOfIt) {
  const comm::Traffic traffic = traffic_of(m::kSequenceForward);
  const int64_t num_layers = machine::probe_model(static_cast<int64_t>(kHidden)).num_layers;
  EXPECT_EQ(calls(traffic, "all_reduce"), 0);
  EXPECT_EQ(calls(traffic, "all_gather"), 2 * num_layers);
  EXPECT_EQ(calls(traffic, "reduce_scatter"), 2 * num_layers);
  const auto hidden_bytes = static_cast<int64_t>(2 * kHidden * kTokens);
  EXPECT_EQ(traffic.of("probe", "all_gather").bytes, 2 * num_layers * hidden_bytes);
}

TEST(Operations, AreThereForEveryPointOfTheFewestRanks) {
  comm::FakeFactory factory(0, 1);
  const at::NoGradGuard no_grad;
  for (const machine::Series& series : machine::series_for(1, 2)) {
    EXPECT_TRUE(make_operation(machine::points_of(series).front(), factory).run) << series.table;
  }
}

}  // namespace
}  // namespace layline::trainer::measure
