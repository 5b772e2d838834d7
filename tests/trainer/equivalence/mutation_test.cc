// For every rule that keeps a distributed run right: broken, it turns the comparison red.
#include "layline/trainer/model/mutation.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "layline/layout/layout_text.h"
#include "tiny_run.h"

namespace layline::trainer {
namespace {

using model::Mutation;

struct Broken {
  Mutation mutation;
  const char* name;
  std::string layout;  // one that shows it
  TinyCase tiny = {};
};

const std::vector<Broken>& broken_rules() {
  const TinyCase grouped{.num_kv_heads = 2}, tied{.tied = true}, uneven{.num_layers = 5};
  static const std::vector<Broken> rules = {
      {Mutation::kSeedByRank, "WeightsAreDrawnByName", "dp1 tp2 pp1 mb1"},
      {Mutation::kMeanPerMicroBatch, "LossIsAMeanOverTheGlobalBatch", "dp1 tp1 pp1 mb1"},
      {Mutation::kMeanPerReplica, "LossIsAMeanOverAllReplicas", "dp2 tp1 pp1 mb1"},
      {Mutation::kBf16Accumulation, "GradientsAreAccumulatedInFullPrecision", "dp1 tp1 pp1 mb1"},
      {Mutation::kCountReplicated, "ReplicatedParametersCountOnce", "dp1 tp2 pp1 mb1"},
      {Mutation::kCountTiedTwice, "TiedParametersCountOnce", "dp1 tp1 pp2 mb1", tied},
      {Mutation::kNoClip, "ClippingActs", "dp1 tp1 pp1 mb1"},
      {Mutation::kSkipPartialSum, "NormsOfSequencePartsAreSummed", "dp1 tp2 pp1 mb1 sp"},
      {Mutation::kSkipReplicaSum, "ReplicatedKeyValueHeadsAreSummed", "dp1 tp4 pp1 mb1", grouped},
      {Mutation::kSkipTiedSum, "TiedEmbeddingsAreSummed", "dp1 tp1 pp2 mb1", tied},
      {Mutation::kSkipColumnInputSum, "InputGradientsAreSummedOverTensorParallelRanks", "dp1 tp2 pp1 mb1"},
      {Mutation::kDoubleRowSum, "OutputsAreSummedOnce", "dp1 tp2 pp1 mb1"},
      {Mutation::kReinitializeGradients, "MicroBatchesAccumulate", "dp1 tp1 pp2 mb1"},
      {Mutation::kSkipPaddingMask, "PaddedVocabularyIsMasked", "dp1 tp2 pp1 mb1"},
      {Mutation::kDropRemainderLayers, "EveryLayerIsThere", "dp1 tp1 pp2 mb1", uneven},
      {Mutation::kSkipLastMicroBatch, "EveryMicroBatchGoesBack", "dp1 tp1 pp2 mb1"},
      {Mutation::kSkipGradientReduction, "GradientsAreSummedOverReplicas", "dp2 tp1 pp1 mb1"},
  };
  return rules;
}

class Rule : public testing::TestWithParam<Broken> {
 protected:
  void TearDown() override { model::set_mutation(Mutation::kNone); }
};

TEST_P(Rule, TurnsTheComparisonRedWhenBroken) {
  const Broken& broken = GetParam();
  const layout::Layout layout = layout::parse_layout(broken.layout);
  const RunRecord reference = reference_run(broken.tiny);
  EXPECT_EQ(compare_run(broken.tiny, layout, reference), "");
  model::set_mutation(broken.mutation);
  EXPECT_NE(compare_run(broken.tiny, layout, reference), "");
}

INSTANTIATE_TEST_SUITE_P(Mutations, Rule, testing::ValuesIn(broken_rules()),
                         [](const auto& info) { return std::string(info.param.name); });

// Those from kForgetMoments on are broken in resume_test.cc.
TEST(Rules, AreAllBrokenOnce) { EXPECT_EQ(broken_rules().size() + 1, static_cast<size_t>(Mutation::kForgetMoments)); }

}  // namespace
}  // namespace layline::trainer
