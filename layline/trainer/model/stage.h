// One virtual pipeline stage of one rank: its layers, the embedding and the head where it has them, and their
// parameters.
//
//   Stage stage(model, spec_of_stage, shard, options);
//   FlatBuffers buffers({&stage.groups()}, …);         // allocates values and main gradients
//   for (Parameter& parameter : stage.parameters()) initialize(parameter, seed);
//   at::Tensor out = stage.forward(input, context);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/layout/stage_split.h"
#include "layline/spec/model.h"
#include "layline/trainer/model/context.h"
#include "layline/trainer/model/embedding.h"
#include "layline/trainer/model/layer.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// Where a rank stands in its tensor-parallel group, and how the rank's group treats weights.
struct Shard {
  int64_t tp_size = 1;
  int64_t tp_rank = 0;
  bool sequence_parallel = false;
  bool tied_across_stages = false;  // tied embeddings, with the embedding and the head on different ranks
};

struct StageOptions {
  layout::Checkpointing checkpointing = layout::Checkpointing::kNone;
  int64_t full_layers = 0;  // kFull of only so many first layers; 0: all
};

class Stage {
 public:
  // Throws base::InputError when the model is not of the Llama kind (RMSNorm, RoPE, SwiGLU, no biases).
  Stage(const spec::Model& model, const layout::Stage& part, const Shard& shard, const StageOptions& options);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // In model order. Parameters have no values until somebody allocates them.
  const std::vector<ParameterGroup*>& groups() const { return groups_; }
  std::deque<Parameter>& parameters() { return parameters_; }

  // The input: hidden [S or S/tp, B, H] from the stage before, or tokens_SB; targets_SB is looked at by the head only.
  // Output: hidden, or the loss (head_loss).
  struct Input {
    at::Tensor hidden, tokens_SB, targets_SB;
    double loss_scale = 1;
  };
  at::Tensor forward(const Input& input, Context& context) const;
  // Of a stage with the head: logits [S, B, V/tp] instead of the loss, without gradients.
  at::Tensor logits(const Input& input, Context& context) const;

  bool has_embedding() const { return part_.has_embedding; }
  bool has_head() const { return part_.has_head; }

 private:
  void add_group(ParameterGroup& group, std::vector<Parameter> parameters, int64_t bucket);
  void add_layer(int64_t index, int64_t bucket);
  void add_ends(int64_t bucket);
  Parameter matrix(const std::string& name, int64_t rows, int64_t columns, int64_t sharded_dim) const;
  Parameter vector(const std::string& name) const;
  Parameter vocabulary_matrix(const std::string& name) const;
  at::Tensor body(const Input& input, Context& context) const;

  spec::Model model_;
  layout::Stage part_;
  Shard shard_;
  StageOptions options_;
  VocabularyPart vocabulary_;
  std::deque<Parameter> parameters_;  // stable addresses
  std::deque<LayerWeights> layers_;
  ParameterGroup embedding_, final_norm_, head_;
  std::vector<ParameterGroup*> groups_;
};

}  // namespace layline::trainer::model
