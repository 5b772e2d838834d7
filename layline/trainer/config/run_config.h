// RUN.json: everything that a training run is, as a value.
//
//   const RunConfig config = read_run_config("run.json", {"optimizer.learning_rate=1e-4", "layout=dp2 tp2"});
//   check_run(config);                               // check_run.h: what this build and this disk have
//   const ResolvedLayout resolved = resolve_layout(config, world_size);  // resolve_layout.h
//
// Paths in it are relative to the current directory, not to the file. Reading is strict: unknown and duplicate keys,
// wrong types and numbers out of range are a base::InputError with file and JSON path; null is the same as no key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/spec/model.h"

namespace layline::trainer::config {

enum class Precision { kBf16, kFp32, kFp64 };  // kBf16: with fp32 main gradients and optimizer
enum class Device { kCpu, kCuda };
enum class DataOrder { kShuffled, kSequential };
enum class Decay { kCosine };
enum class Resume { kNo, kNewest, kPrevious };  // kNewest: from the start if there is no checkpoint
enum class OnSaveError { kStop, kContinue };

// One of several sources of samples, drawn in proportion to the weights.
struct DataSource {
  std::string path;  // a text file, or the prefix of a .bin and an .idx file
  double weight = 1;
};

struct DataConfig {
  std::vector<DataSource> train;
  std::vector<DataSource> valid;
  std::string tokenizer = "bytes";  // or a SentencePiece model; ignored for .bin
  DataOrder order = DataOrder::kShuffled;
  int64_t valid_every_steps = 0;  // 0: never
};

// AdamW as in PyTorch.
struct OptimizerConfig {
  double learning_rate = 3e-4;
  int64_t warmup_steps = 0;      // linear from 0
  Decay decay = Decay::kCosine;  // over all steps, to
  double min_learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // not on one-dimensional parameters
  double clip = 1.0;          // of the gradient norm; 0: off
};

struct CheckpointConfig {
  std::string directory;  // "": no checkpoints
  int64_t every_steps = 0;
  int64_t keep = 2;
  Resume resume = Resume::kNo;
  OnSaveError on_error = OnSaveError::kStop;
};

struct RunConfig {
  std::string where;                   // the file it was read from, for messages
  std::vector<std::string> overrides;  // that were applied to it, for messages
  spec::Model model;
  std::string load;  // folder with safetensors; "": weights are drawn from the seed
  std::string layout = "auto";
  std::string cluster;  // name or file of what it runs on, for layout "auto", predictions and MFU; "": the device's own
  int64_t sequence_length = 0;  // tokens
  int64_t global_batch = 0;     // sequences a step
  int64_t steps = 0;            // in all
  Precision precision = Precision::kBf16;
  Device device = Device::kCpu;
  int64_t seed = 1;
  DataConfig data;
  OptimizerConfig optimizer;
  CheckpointConfig checkpoint;
  std::string metrics;                        // JSON Lines file; "": none
  std::optional<int64_t> memory_limit_bytes;  // of each rank
  double timeout_seconds = 300;
  std::optional<double> stop_after_seconds;

  double tokens_per_step() const { return static_cast<double>(global_batch) * static_cast<double>(sequence_length); }
};

// Where a key got its value, for messages: `run.json: $.layout`, or `--set layout=tp3: $.layout`.
std::string place_of(const RunConfig& config, std::string_view key);

std::string_view name_of(Precision precision);  // "bf16"
std::string_view name_of(Device device);        // "cpu"

// `where` names the text in messages. Each override is "a.b=c", as of the --set flag: it sets a key before the text is
// read; c is JSON, or else a text as it stands. Throws base::InputError.
RunConfig parse_run_config(std::string_view text, const std::string& where,
                           const std::vector<std::string>& overrides = {});

// Of a file. Throws base::InputError.
RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides = {});

// Every key with its value, the model's sizes in full: what parse_run_config reads back. Two runs with the same text
// are the same run.
std::string to_json(const RunConfig& config);

}  // namespace layline::trainer::config
