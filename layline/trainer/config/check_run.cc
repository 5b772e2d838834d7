#include "layline/trainer/config/check_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "layline/base/error.h"
#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/formats/open_tokens.h"
#include "layline/trainer/formats/safetensors_files.h"

namespace layline::trainer::config {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const RunConfig& config, const char* key, const std::string& what) {
  throw base::InputError(place_of(config, key), what);
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

// Nothing is created yet.
void check_can_write(const RunConfig& config, const char* key, const std::string& file) {
  const fs::path parent = fs::path(file).parent_path(), folder = parent.empty() ? "." : parent;
  if (!is_folder(folder)) {
    fail(config, key, fmt::format("\"{}\" cannot be written: there is no folder {}", file, folder.string()));
  }
  if (is_folder(file)) fail(config, key, fmt::format("\"{}\" is a folder, want a file", file));
  const bool exists = access(file.c_str(), F_OK) == 0;
  if (access(exists ? file.c_str() : folder.c_str(), W_OK) == 0) return;
  fail(config, key, fmt::format("\"{}\" cannot be written: {}", file, std::generic_category().message(errno)));
}

// Rows would be appended to what the run reads.
void check_not_read(const RunConfig& config, const char* key, const std::string& file) {
  std::vector<DataSource> sources = config.data.train;
  sources.insert(sources.end(), config.data.valid.begin(), config.data.valid.end());
  std::vector<std::string> inputs = {config.where};
  for (const DataSource& source : sources) {
    for (const char* end : {"", ".bin", ".idx"}) inputs.push_back(source.path + end);
  }
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (fs::equivalent(file, input, ignored)) fail(config, key, fmt::format("\"{}\" is what the run reads", file));
  }
}

// Runs `check` and says its mistakes with the key.
template <typename Check>
auto with_key(const RunConfig& config, const char* key, const Check& check) {
  try {
    return check();
  } catch (const base::InputError& error) {
    fail(config, key, error.what());
  }
}

void check_weights(const RunConfig& config) {
  if (!config.load.empty()) with_key(config, "load", [&] { formats::open_safetensors(config.load); });
}

// Nothing is created or locked yet; what another run does in between shows when this one starts.
void check_checkpoints(const RunConfig& config) {
  const std::string& directory = config.checkpoint.directory;
  if (directory.empty()) return;
  const char* key = "checkpoint.directory";
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) {
    fs::path parent = fs::absolute(directory).parent_path();
    while (!fs::exists(parent, ignored) && parent.has_relative_path()) parent = parent.parent_path();
    if (access(parent.c_str(), W_OK) == 0) return;
    fail(config, key,
         fmt::format("\"{}\" cannot be made in {}: {}", directory, parent.string(),
                     std::generic_category().message(errno)));
  }
  if (!is_folder(directory)) fail(config, key, fmt::format("\"{}\" is a file, want a folder", directory));
  if (access(directory.c_str(), W_OK) != 0) {
    fail(config, key, fmt::format("\"{}\" cannot be written: {}", directory, std::generic_category().message(errno)));
  }
  check_checkpoints_are_own(config);
}

// Whether it is a text file; an indexed data set has its tokens in a file of another name.
bool is_text(const RunConfig& config, const DataSource& source) {
  const std::unique_ptr<const formats::TokenSource> tokens = formats::open_tokens(source.path);
  formats::count_samples(*tokens, config.sequence_length);
  formats::check_vocabulary_of_start(*tokens, config.model.vocab);
  return tokens->path() == source.path && !source.path.ends_with(".bin");
}

void check_sources(const RunConfig& config, const char* key, const std::vector<DataSource>& sources) {
  const bool bytes = config.data.tokenizer == "bytes";
  for (const DataSource& source : sources) {
    if (!with_key(config, key, [&] { return is_text(config, source); }) || bytes) continue;
    fail(config, "data.tokenizer",
         fmt::format("found \"{}\", but text is only read as \"bytes\" by this build; tokenize \"{}\" to .bin and .idx",
                     config.data.tokenizer, source.path));
  }
}

}  // namespace

void check_checkpoints_are_own(const RunConfig& config) {
  const std::string& directory = config.checkpoint.directory;
  const char* key = "checkpoint.directory";
  const std::vector<int64_t> steps = with_key(config, key, [&] { return checkpoint::committed_steps(directory); });
  if (config.checkpoint.resume != Resume::kNo || steps.empty()) return;
  fail(config, key,
       fmt::format("\"{}\" has a checkpoint of step {}: set checkpoint.resume to true to go on from it, or choose "
                   "another folder",
                   directory, steps.front()));
}

void check_build(const RunConfig& config) {
  if (config.device == Device::kCuda) fail(config, "device", "this build has no CUDA support; want \"cpu\"");
  check_model(config);
}

void check_files(const RunConfig& config) {
  check_sources(config, "data.train", config.data.train);
  check_sources(config, "data.valid", config.data.valid);
  check_weights(config);
  check_checkpoints(config);
  if (config.metrics.empty()) return;
  check_can_write(config, "metrics", config.metrics);
  check_not_read(config, "metrics", config.metrics);
}

void check_run(const RunConfig& config) {
  check_build(config);
  check_files(config);
}

}  // namespace layline::trainer::config
