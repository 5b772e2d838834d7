// One parameter of the model as a rank holds it: its part of the weight, where the gradient goes, and the flags from
// which everything else decides how to treat it. Nothing looks at names to find out.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace layline::trainer::model {

// How the ranks of a tensor-parallel group hold a parameter.
enum class TensorSharding {
  kReplicated,  // all of it on every rank, and every rank computes the same gradient
  kPartial,  // all of it on every rank, and each computes the gradient of its own part of the sequence: summed over tp
  kSharded,  // a slice on each
  kShardedReplicas,  // slices, each on several neighbouring ranks (key-value heads fewer than tp): gradients are summed
                     // over those replicas
};

struct Parameter {
  std::string name;  // global, as Hugging Face names it: "model.layers.3.self_attn.q_proj.weight"
  std::vector<int64_t> global_shape;
  int64_t padded_dim0 = 0;  // vocabulary rows after padding to tp; 0: not padded. Rows beyond global_shape[0] are zero
                            // and stay zero.
  TensorSharding sharding = TensorSharding::kReplicated;
  int64_t sharded_dim = -1;   // of global_shape, where sharded
  int64_t shard_offset = 0;   // first index of this rank's slice in that dim (of the padded weight)
  bool is_tied_copy = false;  // the head's copy of a tied embedding, on another stage than the embedding: same weights,
                              // gradients summed over both, counted once in norms
  bool is_tied = false;       // this or another stage's rank holds a copy
  bool decays = true;         // weight decay applies: not to one-dimensional parameters
  bool is_counted = true;     // this rank counts it in norms: exactly one of the ranks that hold the same elements does
  int64_t uses = 1;  // times that a micro-batch's backward adds to its gradient (2 for a tied weight in one place)
  double initial_std = 0;  // of the normal distribution that it is drawn from; 0: ones (norms)

  std::vector<int64_t> local_shape;
  at::Tensor value;                   // this rank's slice, in the compute dtype: a view into the stage's flat buffer
  at::Tensor main_grad;               // same shape, fp32 (fp64 in fp64 runs): a view into the flat gradient buffer
  std::function<void()> on_gradient;  // called after each addition to main_grad

  int64_t num_local() const {
    int64_t n = 1;
    for (const int64_t size : local_shape) n *= size;
    return n;
  }
};

// Parameters whose values and gradients lie next to each other, so that one matrix product serves them all (query, key
// and value; gate and up). Their shapes agree but for dim 0.
struct ParameterGroup {
  std::vector<Parameter*> parameters;
  int64_t bucket = 0;  // groups of one bucket have their gradients reduced together
  // Over dim 0, set with the parameters' own.
  at::Tensor value, main_grad;

  void notify() const {
    for (const Parameter* parameter : parameters) {
      if (parameter->on_gradient) parameter->on_gradient();
    }
  }
};

}  // namespace layline::trainer::model
