// Weights in safetensors files, in and out.
//
//   const SafetensorsFolder folder("llama-7b");
//   at::Tensor part = folder.slice("model.embed_tokens.weight", 0, 16000, 16000);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace layline::trainer::data {

struct TensorInfo {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
};

// Everything const may be called by several threads at once.
class SafetensorsFolder {
 public:
  // path: a safetensors file; or a folder with model.safetensors or, failing that, with model.safetensors.index.json
  // and the files that it names. Opening maps the files and checks all headers; tensors are read when asked for. Throws
  // base::InputError when something is missing or damaged: the file, where in it, found, allowed.
  explicit SafetensorsFolder(const std::string& path);
  ~SafetensorsFolder();

  const std::string& path() const;  // as given
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;

  // Each throws base::InputError for an unknown name, with the nearest.
  TensorInfo info(const std::string& name) const;
  // A copy, on the CPU, contiguous.
  at::Tensor load(const std::string& name) const;
  // The same of indices [offset, offset + length) of dimension `dim`, which must be there; reads only what it copies.
  at::Tensor slice(const std::string& name, int64_t dim, int64_t offset, int64_t length) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// One file with these tensors, of any device and strides. The old file or the new is there at any time, never a part.
// Throws base::InputError when the place cannot be written, base::RunError when writing fails.
void write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace layline::trainer::data
