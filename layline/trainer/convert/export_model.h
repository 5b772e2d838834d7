// A checkpoint as a folder that Hugging Face's transformers load: config.json and the weights in safetensors files.
#pragma once

#include <functional>
#include <string>

#include "layline/base/progress.h"
#include "layline/trainer/checkpoint/reader.h"

namespace layline::trainer::convert {

struct ExportOptions {
  formats::TensorType type = formats::TensorType::kBf16;  // F32, BF16, F16 or F64
  int64_t file_bytes = 5'000'000'000;                     // of a file at most, unless one weight is larger
  base::ProgressSink* sink = nullptr;
  std::function<bool()> is_cancelled;  // may be empty
};

struct Exported {
  int64_t num_files = 0;  // of weights
  int64_t size_bytes = 0;
};

// `folder` is made, and there when it is whole. Throws base::InputError (it is there already, it cannot be made, the
// checkpoint is damaged) and base::RunError (a full disk, cancelled); then it is not there.
Exported export_model(const checkpoint::CheckpointReader& reader, const std::string& folder,
                      const ExportOptions& options);

}  // namespace layline::trainer::convert
