#include "layline/trainer/loop/load_weights.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/model/stage.h"

namespace layline::trainer::loop {

namespace {

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
// Buffers that old versions of transformers saved with the weights; they follow from the configuration.
constexpr std::string_view kRotaryBuffer = "rotary_emb.inv_freq";

}  // namespace

std::map<std::string, std::vector<int64_t>> weights_of(const spec::Model& model) {
  const layout::Stage whole{0, model.num_layers, true, true};
  model::Stage stage(model, whole, {}, {});
  std::map<std::string, std::vector<int64_t>> weights;
  for (const model::Parameter& parameter : stage.parameters()) weights[parameter.name] = parameter.global_shape;
  return weights;
}

void check_fits(const data::SafetensorsFolder& folder, const spec::Model& model) {
  const std::map<std::string, std::vector<int64_t>> wanted = weights_of(model);
  const std::vector<std::string> names = folder.names();
  for (const auto& [name, shape] : wanted) {
    if (!folder.has(name)) {
      const std::string nearest = base::nearest_name(name, names);
      throw base::InputError(folder.path(), fmt::format("has no weight \"{}\" of model {}{}", name, model.name,
                                                        nearest.empty() ? "" : " (the nearest is " + nearest + ")"));
    }
    const data::TensorInfo found = folder.info(name);
    if (found.shape != shape) {
      throw base::InputError(folder.path(),
                             fmt::format("weight \"{}\" is {}; model {} has {}", name, fmt::join(found.shape, " x "),
                                         model.name, fmt::join(shape, " x ")));
    }
    if (!at::isFloatingType(found.dtype)) {
      throw base::InputError(folder.path(),
                             fmt::format("weight \"{}\" has numbers of type {}; want floating-point ones", name,
                                         c10::toString(found.dtype)));
    }
  }
  for (const std::string& name : names) {
    if (wanted.count(name) != 0 || name.find(kRotaryBuffer) != std::string::npos) continue;
    if (model.tied_embeddings && name == kHead && folder.info(name).shape == wanted.at(kEmbedding)) continue;
    throw base::InputError(folder.path(),
                           fmt::format("has a weight \"{}\" that model {} does not have", name, model.name));
  }
}

void load_weights(const data::SafetensorsFolder& folder, model::Parameter& parameter) {
  if (parameter.sharded_dim < 0) {
    parameter.value.copy_(folder.load(parameter.name));
    return;
  }
  const int64_t dim = parameter.sharded_dim, total = parameter.global_shape[static_cast<size_t>(dim)];
  const int64_t first = std::min(parameter.shard_offset, total);
  const int64_t count = std::min(parameter.local_shape[static_cast<size_t>(dim)], total - first);
  parameter.value.zero_();
  if (count > 0) parameter.value.narrow(dim, 0, count).copy_(folder.slice(parameter.name, dim, first, count));
}

}  // namespace layline::trainer::loop
