// Safetensors against a model: each way in which they can fail to be its weights.
#include "layline/trainer/loop/load_weights.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "layline/trainer/checkpoint/model_weights.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/model/stage.h"
#include "tests/trainer/formats/files.h"
#include "tests/trainer/loop/tiny.h"

namespace layline::trainer::loop::test {
namespace {

using formats::test::input_error;
using testing::AllOf;
using testing::HasSubstr;
using Weights = std::map<std::string, at::Tensor>;

Weights weights_of(const spec::Model& model) {
  Weights weights;
  model::Stage stage(model, {0, model.num_layers, true, true}, {}, {});
  for (const model::Parameter& parameter : stage.parameters()) {
    weights[parameter.name] = at::ones(parameter.global_shape);
  }
  return weights;
}

TEST(ModelWeights, AreShardedAsTheModelsParametersAre) {
  for (const bool is_tied : {false, true}) {
    spec::Model model = tiny_model();
    model.tied_embeddings = is_tied;
    model::Stage stage(model, {0, model.num_layers, true, true}, {.tp_size = 2}, {});
    const auto weights = checkpoint::model_weights(model);
    std::map<std::string, int64_t> dims;
    for (const model::Parameter& parameter : stage.parameters()) {
      dims[parameter.name] = parameter.sharded_dim;
      ASSERT_EQ(weights.count(parameter.name), 1U) << parameter.name;
      EXPECT_EQ(weights.at(parameter.name).shape, parameter.global_shape) << parameter.name;
      EXPECT_EQ(weights.at(parameter.name).sharded_dim, parameter.sharded_dim) << parameter.name;
    }
    EXPECT_EQ(dims.size(), weights.size());
  }
}

class CheckFits : public testing::Test {
 protected:
  void check() {
    data::write_safetensors(folder_.file("model.safetensors"), weights_);
    check_fits(data::SafetensorsFolder(folder_.path()), model_);
  }
  std::string mistake() {
    return input_error([&] { check(); });
  }

  spec::Model model_ = tiny_model();
  Weights weights_ = weights_of(model_);

 private:
  formats::test::TemporaryFolder folder_;
};

TEST_F(CheckFits, AcceptsTheModelsOwnWeightsInAnyPrecision) {
  EXPECT_NO_THROW(check());
  for (auto& [name, tensor] : weights_) tensor = tensor.to(at::kBFloat16);
  EXPECT_NO_THROW(check());
}

TEST_F(CheckFits, NamesAWeightThatIsMissingAndTheNearest) {
  auto norm = weights_.extract("model.norm.weight");
  norm.key() = "model.norm.weights";
  weights_.insert(std::move(norm));
  EXPECT_THAT(mistake(),
              HasSubstr("has no weight \"model.norm.weight\" of model tiny (the nearest is model.norm.weights)"));
}

TEST_F(CheckFits, NamesAWeightOfAnotherShapeWithBoth) {
  at::Tensor& gate = weights_["model.layers.1.mlp.gate_proj.weight"];
  gate = gate.t().contiguous();
  EXPECT_THAT(mistake(), HasSubstr("\"model.layers.1.mlp.gate_proj.weight\" is 32 x 48; model tiny has 48 x 32"));
}

TEST_F(CheckFits, NamesAWeightThatTheModelDoesNotHave) {
  weights_["model.layers.0.self_attn.q_proj.bias"] = at::ones({32});
  EXPECT_THAT(mistake(), HasSubstr("\"model.layers.0.self_attn.q_proj.bias\" that model tiny does not have"));
}

TEST_F(CheckFits, RefusesWeightsThatAreWholeNumbers) {
  at::Tensor& norm = weights_["model.norm.weight"];
  norm = norm.to(at::kInt);
  EXPECT_THAT(mistake(), AllOf(HasSubstr("\"model.norm.weight\""), HasSubstr("I32"), HasSubstr("floating-point")));
}

TEST_F(CheckFits, ATiedHeadMayBeThereTwice) {
  model_.tied_embeddings = true;
  EXPECT_NO_THROW(check());
  weights_["lm_head.weight"] = at::ones({64, 31});
  EXPECT_THAT(mistake(), HasSubstr("lm_head.weight"));
}

TEST_F(CheckFits, RotaryBuffersOfOldFilesAreIgnored) {
  weights_["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::ones({4});
  EXPECT_NO_THROW(check());
}

}  // namespace
}  // namespace layline::trainer::loop::test
