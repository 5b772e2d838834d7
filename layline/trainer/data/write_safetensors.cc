#include <ATen/ATen.h>

#include <cassert>
#include <string_view>

#include "layline/base/file.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/data/tensor_type.h"
#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::data {

void write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::map<std::string, at::Tensor> dense;
  std::map<std::string, formats::TensorShape> shapes;
  for (const auto& [name, tensor] : tensors) {
    assert(name != formats::kMetadataKey);
    dense[name] = tensor.detach().to(at::kCPU).contiguous();
    shapes[name] = {.type = to_tensor_type(tensor.scalar_type()), .shape = tensor.sizes().vec()};
  }
  const formats::WrittenHeader header = formats::write_safetensors_header(shapes, metadata);
  std::vector<std::string_view> pieces = {header.bytes};
  for (const std::string& name : header.order) {
    const at::Tensor& tensor = dense.at(name);
    pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  base::write_file_atomically(path, pieces);
}

}  // namespace layline::trainer::data
