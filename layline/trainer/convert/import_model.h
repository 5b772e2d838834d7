// A folder of Hugging Face's transformers as a checkpoint, and checkpoints as others.
#pragma once

#include <string>

#include "layline/trainer/checkpoint/reader.h"
#include "layline/trainer/convert/write_checkpoint.h"

namespace layline::trainer::convert {

// The model in `folder` (config.json and safetensors files) as the checkpoint of step 0 in `directory`, from which
// training goes on with moments of zero. type: F32, of bf16 and fp32 runs, or F64. Returns the checkpoint's folder.
// Throws base::InputError: what is missing or does not fit, by name; the rest as write_checkpoint.
std::string import_model(const std::string& folder, const std::string& directory, formats::TensorType type,
                         const WriteOptions& options);

struct ConvertOptions {
  formats::TensorType type = formats::TensorType::kF32;  // or F64
  bool keeps_moments = true;
};

// The same step in `directory` with numbers of another type, in files of options.file_bytes. Returns the new folder.
std::string convert_checkpoint(const checkpoint::CheckpointReader& reader, const std::string& directory,
                               const ConvertOptions& convert, const WriteOptions& options);

}  // namespace layline::trainer::convert
