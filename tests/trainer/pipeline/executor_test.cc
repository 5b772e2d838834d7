// The executor against the same chain of stages computed in one piece, for every schedule.
#include "layline/trainer/pipeline/executor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layline/trainer/comm/thread_group.h"

namespace layline::trainer::pipeline {
namespace {

using schedule::ScheduleKind;

constexpr int64_t kWidth = 5;
constexpr auto kTimeout = std::chrono::seconds(20);

double factor_of(int64_t virtual_stage) { return 1.0 + 0.25 * static_cast<double>(virtual_stage); }
at::Tensor sample(int64_t micro_batch) {
  return at::arange(kWidth, at::kDouble) * 0.1 + static_cast<double>(micro_batch + 1);
}

// y = sin(factor · x): virtual stage 0 makes its input itself, the last one sums up. The "weight" gradient is that of
// the factor, Σ dy · cos(factor · x) · x, put off like a real one.
class SineChunk : public Chunk {
 public:
  SineChunk(int64_t virtual_stage, int64_t num_virtual_stages, model::WeightGradients& later)
      : stage_(virtual_stage), is_last_(virtual_stage + 1 == num_virtual_stages), later_(later) {}

  at::Tensor forward(int64_t micro_batch, const at::Tensor& input) override {
    const at::Tensor x = input.defined() ? input : sample(micro_batch);
    at::Tensor y;
    {
      const at::NoGradGuard no_grad;
      y = (x * factor_of(stage_)).sin();
    }
    std::vector<at::Tensor> inputs;
    if (input.defined()) inputs.push_back(input);
    y = model::with_backward(y, inputs, [this, x = model::plain(x), inputs = inputs.size()](const at::Tensor& dy) {
      const at::Tensor inner = dy * (x * factor_of(stage_)).cos();
      later_.add([this, inner, x] { gradient += (inner * x).sum().item<double>(); });
      return std::vector<at::Tensor>(inputs, inner * factor_of(stage_));
    });
    return is_last_ ? y.sum() : y;
  }

  double gradient = 0;

 private:
  int64_t stage_;
  bool is_last_;
  model::WeightGradients& later_;
};

struct Expected {
  double loss = 0;
  std::vector<double> gradients;  // of each virtual stage's factor
};

Expected in_one_piece(int64_t num_virtual_stages, int64_t num_micro_batches) {
  std::vector<at::Tensor> factors;
  for (int64_t j = 0; j < num_virtual_stages; ++j) {
    factors.push_back(at::full({}, factor_of(j), at::kDouble).requires_grad_(true));
  }
  Expected expected;
  for (int64_t m = 0; m < num_micro_batches; ++m) {
    at::Tensor x = sample(m);
    for (const at::Tensor& factor : factors) x = (x * factor).sin();
    x.sum().backward();
    expected.loss += x.sum().item<double>();
  }
  for (const at::Tensor& factor : factors) expected.gradients.push_back(factor.grad().item<double>());
  return expected;
}

struct Shape {
  ScheduleKind kind;
  int64_t pp, vp, micro_batches;
};

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const int64_t pp : {1, 2, 3, 4}) {
    for (const int64_t m : {1, 2, 3, 5, 8}) {
      for (const auto kind : {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kZeroBubble}) {
        shapes.push_back({kind, pp, 1, m});
      }
      if (pp > 1) shapes.push_back({ScheduleKind::kInterleaved, pp, 2, m});
      if (pp > 1) shapes.push_back({ScheduleKind::kInterleaved, pp, 3, m});
    }
  }
  return shapes;
}

class EverySchedule : public testing::TestWithParam<Shape> {};

TEST_P(EverySchedule, ComputesWhatTheStagesInOnePieceCompute) {
  const Shape& shape = GetParam();
  const Expected expected = in_one_piece(shape.pp * shape.vp, shape.micro_batches);
  const schedule::Schedule schedule =
      schedule::make_schedule(shape.kind, {.pp = shape.pp, .vp = shape.vp, .micro_batches = shape.micro_batches});
  comm::run_as_threads(shape.pp, kTimeout, [&](comm::GroupFactory& factory) {
    const std::unique_ptr<comm::Group> pp = factory.make_world();
    model::WeightGradients later;
    std::vector<std::unique_ptr<SineChunk>> chunks;
    std::vector<Chunk*> pointers;
    for (int64_t c = 0; c < shape.vp; ++c) {
      chunks.push_back(std::make_unique<SineChunk>(c * shape.pp + pp->rank(), shape.pp * shape.vp, later));
      pointers.push_back(chunks.back().get());
    }
    Executor executor(schedule, pp->rank(), pointers, *pp, {{kWidth}, at::TensorOptions().dtype(at::kDouble)}, later);
    const bool is_last_rank = pp->rank() + 1 == shape.pp;
    for (int step = 1; step <= 2; ++step) {
      EXPECT_NEAR(executor.run(), is_last_rank ? expected.loss : 0.0, 1e-12);
      for (int64_t c = 0; c < shape.vp; ++c) {
        const double wanted = step * expected.gradients[static_cast<size_t>(c * shape.pp + pp->rank())];
        EXPECT_NEAR(chunks[static_cast<size_t>(c)]->gradient, wanted, 1e-10 * std::max(1.0, std::abs(wanted)));
      }
    }
    EXPECT_NEAR(executor.run_forward(), is_last_rank ? expected.loss : 0.0, 1e-12);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, EverySchedule, testing::ValuesIn(all_shapes()), [](const auto& info) {
  const Shape& s = info.param;
  std::string kind(spec::name_of(s.kind));
  return fmt::format("{}_pp{}_vp{}_m{}", kind, s.pp, s.vp, s.micro_batches);
});

// A chunk whose output is large, to see how long it lives.
class LargeChunk : public Chunk {
 public:
  explicit LargeChunk(bool is_last) : is_last_(is_last) {}
  at::Tensor forward(int64_t, const at::Tensor& input) override {
    at::Tensor y = at::ones({kWidth}, at::kDouble);
    std::vector<at::Tensor> inputs;
    if (input.defined()) inputs.push_back(input);
    outputs.emplace_back(y.storage().getWeakStorageImpl());
    y = model::with_backward(y, inputs, [this, n = inputs.size(), i = outputs.size() - 1](const at::Tensor& dy) {
      if (!is_last_ && !outputs[i].expired()) ++num_kept;
      return std::vector<at::Tensor>(n, dy);
    });
    return is_last_ ? y.sum() : y;
  }
  int num_kept = 0;  // outputs that were still there when their gradient came back
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> outputs;

 private:
  bool is_last_;
};

TEST(Executor, FreesOutputsThatHaveBeenSent) {
  constexpr int64_t kMicroBatches = 6;
  const schedule::Schedule schedule =
      schedule::make_schedule(ScheduleKind::kGpipe, {.pp = 2, .vp = 1, .micro_batches = kMicroBatches});
  comm::run_as_threads(2, kTimeout, [&](comm::GroupFactory& factory) {
    const std::unique_ptr<comm::Group> pp = factory.make_world();
    model::WeightGradients later;
    LargeChunk chunk(pp->rank() == 1);
    Executor executor(schedule, pp->rank(), {&chunk}, *pp, {{kWidth}, at::TensorOptions().dtype(at::kDouble)}, later);
    executor.run();
    EXPECT_EQ(chunk.outputs.size(), static_cast<size_t>(kMicroBatches));
    EXPECT_EQ(chunk.num_kept, 0);
  });
}

}  // namespace
}  // namespace layline::trainer::pipeline
