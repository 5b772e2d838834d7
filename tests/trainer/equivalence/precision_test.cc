// In bf16 and fp32: the same layout twice gives the same bits, other layouts stay within what rounding explains.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/trainer/comm/thread_group.h"
#include "tiny_run.h"

namespace layline::trainer {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights;  // by rank and name
};

Outcome run(const TinyCase& tiny, const std::string& text) {
  const layout::Layout layout = layout::parse_layout(text);
  Outcome outcome;
  std::mutex mutex;
  comm::run_as_threads(layout.world_size(), kTimeout, [&](comm::GroupFactory& factory) {
    loop::RankTrainer trainer(training_job(tiny, layout), factory);
    trainer.initialize();
    for (int64_t step = 1; step <= tiny.steps; ++step) {
      const loop::StepResult result = trainer.step(micro_batches(tiny, layout, trainer.dp_rank(), step));
      const std::lock_guard lock(mutex);
      if (factory.rank() != 0) continue;
      outcome.losses.push_back(result.loss);
      outcome.norms.push_back(result.grad_norm);
    }
    const std::lock_guard lock(mutex);
    for (const model::Parameter* parameter : trainer.parameters()) {
      outcome.weights[std::to_string(factory.rank()) + " " + parameter->name] = parameter->value.clone();
    }
  });
  return outcome;
}

const std::vector<std::string> kLayouts = {"dp2 tp2 pp1 mb1 sp", "dp1 tp2 pp2 mb2 ckpt=selective",
                                           "dp2 tp1 pp2 mb1 vp2 sched=interleaved", "dp1 tp4 pp1 mb3 zero0"};

class Precision : public testing::TestWithParam<at::ScalarType> {
 protected:
  TinyCase tiny() const { return {.steps = 5, .dtype = GetParam()}; }
};

TEST_P(Precision, RepeatsTheSameBitsUnderTheSameLayout) {
  for (const std::string& layout : kLayouts) {
    const Outcome first = run(tiny(), layout), second = run(tiny(), layout);
    EXPECT_EQ(first.losses, second.losses) << layout;
    EXPECT_EQ(first.norms, second.norms) << layout;
    for (const auto& [name, weight] : first.weights) {
      EXPECT_TRUE(at::equal(weight, second.weights.at(name))) << layout << " " << name;
    }
  }
}

TEST_P(Precision, StaysWithinRoundingUnderOtherLayouts) {
  // bf16 keeps 8 bits, fp32 24: a loss is a mean over many roundings, a norm a sum of them.
  const double tolerance = GetParam() == at::kBFloat16 ? 2e-2 : 1e-5;
  const Outcome alone = run(tiny(), "dp1 tp1 pp1 mb12");
  for (const std::string& layout : kLayouts) {
    const Outcome other = run(tiny(), layout);
    for (size_t step = 0; step < alone.losses.size(); ++step) {
      EXPECT_NEAR(other.losses[step], alone.losses[step], tolerance * alone.losses[step]) << layout << " " << step;
      EXPECT_NEAR(other.norms[step], alone.norms[step], 3 * tolerance * alone.norms[step]) << layout << " " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Precision, testing::Values(at::kBFloat16, at::kFloat),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

}  // namespace
}  // namespace layline::trainer
