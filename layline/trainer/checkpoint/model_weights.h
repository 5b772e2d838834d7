// The weights of a Llama, by the names that Hugging Face gives them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layline/spec/model.h"
#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::checkpoint {

struct ModelWeight {
  std::vector<int64_t> shape;  // as stored: outputs x inputs
  int sharded_dim = -1;        // that tensor parallelism divides; -1: none
};

// Of the whole model, with RMSNorm, SwiGLU and no biases: what the trainer trains. A tied head is no weight of its own.
std::map<std::string, ModelWeight> model_weights(const spec::Model& model);

// Throws base::InputError naming `path` when `found`, what its files hold, lacks a weight of the model, or has one of
// another shape or not of floating-point numbers, or one that the model does not have. A head that repeats a tied
// embedding is accepted, and buffers that old versions of transformers saved.
void check_fits(const std::map<std::string, formats::TensorShape>& found, const std::string& path,
                const spec::Model& model);

}  // namespace layline::trainer::checkpoint
