// The safetensors files of a model, mapped into memory, with what their headers say.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layline/trainer/formats/mapped_file.h"
#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::formats {

// Where a tensor is.
struct PlacedTensor {
  TensorEntry entry;
  const MappedFile* file = nullptr;
};

struct SafetensorsFiles {
  std::string path;  // as given
  std::vector<std::unique_ptr<MappedFile>> files;
  std::map<std::string, PlacedTensor> tensors;  // by name
};

// Of one file, or of a folder as Hugging Face writes it: model.safetensors, or model.safetensors.index.json with the
// shards that it names. Throws base::InputError when one is missing, cut short or damaged, or lacks what the index says
// of it.
SafetensorsFiles open_safetensors(const std::string& path);

}  // namespace layline::trainer::formats
