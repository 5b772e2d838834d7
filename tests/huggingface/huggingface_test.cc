// Our Llama against Hugging Face's, from the same files: logits, loss, every gradient, and AdamW steps.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/loop/load_weights.h"
#include "layline/trainer/loop/rank_trainer.h"
#include "layline/trainer/model/head.h"

namespace layline::trainer {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);

struct Reference {
  explicit Reference(const std::string& name)
      : folder(std::string(LAYLINE_BINARY_DIR) + "/huggingface/" + name),
        model(spec::get_model(folder)),
        weights(folder),
        wanted(folder + "/reference.safetensors") {}

  std::string folder;
  spec::Model model;
  data::SafetensorsFolder weights, wanted;

  at::ScalarType dtype() const { return wanted.info("logits").dtype; }
  // Rounding of a few hundred operations.
  double tolerance() const { return dtype() == at::kDouble ? 1e-11 : 5e-5; }
};

data::MicroBatch batch_of(const at::Tensor& tokens, const at::Tensor& mask) {
  const int64_t S = tokens.size(1) - 1;
  const at::Tensor targets = tokens.narrow(1, 1, S).clone();
  targets.masked_fill_(mask == 0, model::kIgnoredTarget);
  return {tokens.narrow(1, 0, S).contiguous(), targets};
}

loop::TrainingJob job_of(const Reference& reference, const std::string& layout_text, int64_t batch, int64_t sequence) {
  loop::TrainingJob job;
  job.model = reference.model;
  job.layout = layout::parse_layout(layout_text);
  job.stages = layout::stages_of(job.layout, job.model.num_layers);
  job.sequence_length = sequence;
  job.global_batch = batch;
  job.dtype = reference.dtype();
  job.steps = 100;
  job.optimizer.learning_rate = job.optimizer.min_learning_rate = 1e-2;
  return job;
}

void load(const Reference& reference, loop::RankTrainer& trainer) {
  loop::check_fits(reference.weights, reference.model);
  trainer.set_weights([&](model::Parameter& parameter) { loop::load_weights(reference.weights, parameter); });
}

void expect_near(const at::Tensor& found, const at::Tensor& wanted, double tolerance, const std::string& what) {
  ASSERT_EQ(found.sizes(), wanted.sizes()) << what;
  const double difference = (found.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
  EXPECT_LE(difference, tolerance * wanted.abs().max().item<double>()) << what;
}

at::Tensor slice_of(const at::Tensor& whole, const model::Parameter& parameter) {
  if (parameter.sharded_dim < 0) return whole;
  const int64_t dim = parameter.sharded_dim, total = whole.size(dim);
  const int64_t first = std::min(parameter.shard_offset, total);
  const int64_t count = std::min(parameter.local_shape[static_cast<size_t>(dim)], total - first);
  std::vector<int64_t> shape = parameter.local_shape;
  at::Tensor slice = at::zeros(shape, whole.options());
  if (count > 0) slice.narrow(dim, 0, count).copy_(whole.narrow(dim, first, count));
  return slice;
}

// The first step of a rank: loss, norm, and all gradients that the rank has.
void compare_first_step(const Reference& reference, const std::string& layout, comm::GroupFactory& factory) {
  const at::Tensor tokens = reference.wanted.load("tokens"), mask = reference.wanted.load("loss_mask");
  loop::RankTrainer trainer(job_of(reference, layout, tokens.size(0), tokens.size(1) - 1), factory);
  load(reference, trainer);
  const loop::StepResult result = trainer.step({batch_of(tokens, mask)});
  const auto number = [&](const char* name) { return reference.wanted.load(name).item<double>(); };
  EXPECT_NEAR(result.loss, number("loss"), reference.tolerance() * number("loss")) << layout;
  EXPECT_NEAR(result.grad_norm, number("grad_norm"), reference.tolerance() * number("grad_norm")) << layout;
  trainer.for_each_gradient([&](const model::Parameter& parameter, int64_t offset, const at::Tensor& gradient) {
    const at::Tensor whole = reference.wanted.load("grad." + parameter.name);
    const at::Tensor part = slice_of(whole, parameter).reshape(-1).narrow(0, offset, gradient.numel());
    const double largest = whole.abs().max().item<double>();
    const double difference = (gradient - part).abs().max().item<double>();
    EXPECT_LE(difference, reference.tolerance() * largest) << layout << " " << parameter.name;
  });
}

void compare_logits(const Reference& reference, comm::GroupFactory& factory) {
  const at::Tensor tokens = reference.wanted.load("tokens"), mask = reference.wanted.load("loss_mask");
  loop::RankTrainer trainer(
      job_of(reference, fmt::format("dp1 tp1 pp1 mb{}", tokens.size(0)), tokens.size(0), tokens.size(1) - 1), factory);
  load(reference, trainer);
  expect_near(trainer.logits(batch_of(tokens, mask).tokens_BS), reference.wanted.load("logits"), reference.tolerance(),
              "logits");
}

class HuggingFace : public testing::TestWithParam<const char*> {};

TEST_P(HuggingFace, HasTheSameLogitsLossAndGradients) {
  const Reference reference(GetParam());
  const int64_t batch = reference.wanted.info("tokens").shape[0];
  comm::run_as_threads(1, kTimeout, [&](comm::GroupFactory& factory) { compare_logits(reference, factory); });
  for (const char* axes : {"dp1 tp1 pp1", "dp1 tp2 pp2 sp", "dp1 tp4 pp1"}) {
    const std::string layout = fmt::format("{} mb{}", axes, batch);
    comm::run_as_threads(layout::parse_layout(layout).world_size(), kTimeout,
                         [&](comm::GroupFactory& factory) { compare_first_step(reference, layout, factory); });
  }
}

TEST_P(HuggingFace, StaysWithPyTorchsAdamW) {
  const Reference reference(GetParam());
  if (!reference.wanted.has("trained.loss")) return;  // a row without trained steps
  const at::Tensor tokens = reference.wanted.load("trained.tokens"), mask = reference.wanted.load("trained.loss_mask");
  const at::Tensor losses = reference.wanted.load("trained.loss"), norms = reference.wanted.load("trained.grad_norm");
  const double tolerance = reference.dtype() == at::kDouble ? 1e-10 : 1e-3;
  comm::run_as_threads(1, kTimeout, [&](comm::GroupFactory& factory) {
    loop::RankTrainer trainer(
        job_of(reference, fmt::format("dp1 tp1 pp1 mb{}", tokens.size(1)), tokens.size(1), tokens.size(2) - 1),
        factory);
    load(reference, trainer);
    for (int64_t step = 0; step < losses.size(0); ++step) {
      const loop::StepResult result = trainer.step({batch_of(tokens[step], mask[step])});
      EXPECT_NEAR(result.loss, losses[step].item<double>(), tolerance * losses[step].item<double>()) << step;
      EXPECT_NEAR(result.grad_norm, norms[step].item<double>(), tolerance * norms[step].item<double>()) << step;
    }
    for (const model::Parameter* parameter : trainer.parameters()) {
      expect_near(parameter->value, reference.wanted.load("trained.weight." + parameter->name), tolerance,
                  parameter->name);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Models, HuggingFace,
                         testing::Values("mha", "mha_fp32", "gqa_4_2", "gqa_4_2_fp32", "gqa_4_1", "tied", "tied_fp32",
                                         "head_size_16", "rope_theta_500000", "llama3_rope",
                                         "llama3_rope_transformers4", "sharded", "sharded_tied_fp32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace layline::trainer
