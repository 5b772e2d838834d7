#include "layline/trainer/config/check_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "layline/base/error.h"
#include "layline/trainer/formats/open_tokens.h"

namespace layline::trainer::config {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const RunConfig& config, const char* key, const std::string& what) {
  throw base::InputError(config.where, fmt::format("$.{}: {}", key, what));
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void check_model(const RunConfig& config) {
  const spec::Model& model = config.model;
  const auto lacks = [&](const std::string& what) {
    fail(config, "model",
         fmt::format("{} has {}; models that can be trained have RMSNorm, RoPE and SwiGLU, and no biases", model.name,
                     what));
  };
  if (model.norm != spec::Norm::kRmsNorm) lacks("LayerNorm");
  if (model.position == spec::Position::kLearned) lacks("learned positions");
  if (model.position == spec::Position::kAlibi) lacks("ALiBi");
  if (model.mlp != spec::Mlp::kSwiglu) lacks("no SwiGLU");
  if (model.qkv_bias || model.linear_bias) lacks("biases");
  if (model.rope.scaling == spec::RopeScaling::kOther) {
    lacks(fmt::format("RoPE scaling \"{}\" (linear and llama3 can be)", model.rope.other_scaling));
  }
  if (model.head_size % 2 != 0) lacks(fmt::format("head size {}, which RoPE cannot halve", model.head_size));
}

void check_folder_of(const RunConfig& config, const char* key, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !is_folder(folder)) {
    fail(config, key, fmt::format("\"{}\" cannot be written: there is no folder {}", file, folder.string()));
  }
  if (is_folder(file)) fail(config, key, fmt::format("\"{}\" is a folder, want a file", file));
}

// Model files lie in it, or are listed by an index file.
void check_weights(const RunConfig& config) {
  if (config.load.empty()) return;
  if (!is_folder(config.load)) {
    fail(config, "load",
         fmt::format("\"{}\": {}; want a folder with safetensors files", config.load,
                     is_file(config.load) ? "is a file" : "no such folder"));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(config.load)) {
    if (entry.path().extension() == ".safetensors") return;
  }
  fail(config, "load", fmt::format("\"{}\" has no .safetensors file", config.load));
}

// Whether it is a text file; an indexed data set has its tokens in a file of another name.
bool is_text(const RunConfig& config, const char* key, const DataSource& source) {
  try {
    return formats::open_tokens(source.path)->path() == source.path && !source.path.ends_with(".bin");
  } catch (const base::InputError& error) {
    fail(config, key, error.what());
  }
}

void check_sources(const RunConfig& config, const char* key, const std::vector<DataSource>& sources) {
  const bool bytes = config.data.tokenizer == "bytes";
  for (const DataSource& source : sources) {
    if (!is_text(config, key, source) || bytes) continue;
    fail(config, "data.tokenizer",
         fmt::format("found \"{}\", but text is only read as \"bytes\" by this build; tokenize \"{}\" to .bin and .idx",
                     config.data.tokenizer, source.path));
  }
}

}  // namespace

void check_build(const RunConfig& config) {
  if (config.device == Device::kCuda) fail(config, "device", "this build has no CUDA support; want \"cpu\"");
  if (!config.checkpoint.directory.empty()) {
    fail(config, "checkpoint.directory", "this build cannot write checkpoints yet; leave it out");
  }
  check_model(config);
}

void check_files(const RunConfig& config) {
  check_sources(config, "data.train", config.data.train);
  check_sources(config, "data.valid", config.data.valid);
  check_weights(config);
  if (!config.metrics.empty()) check_folder_of(config, "metrics", config.metrics);
}

void check_run(const RunConfig& config) {
  check_build(config);
  check_files(config);
}

}  // namespace layline::trainer::config
