#include "layline/trainer/loop/load_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "layline/trainer/checkpoint/model_weights.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/data/tensor_type.h"

namespace layline::trainer::loop {

std::map<std::string, std::vector<int64_t>> weights_of(const spec::Model& model) {
  std::map<std::string, std::vector<int64_t>> weights;
  for (const auto& [name, weight] : checkpoint::model_weights(model)) weights[name] = weight.shape;
  return weights;
}

void check_fits(const data::SafetensorsFolder& folder, const spec::Model& model) {
  std::map<std::string, formats::TensorShape> found;
  for (const std::string& name : folder.names()) {
    const data::TensorInfo info = folder.info(name);
    found[name] = {.type = data::to_tensor_type(info.dtype), .shape = info.shape};
  }
  checkpoint::check_fits(found, folder.path(), model);
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
