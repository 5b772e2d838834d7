#include <fmt/format.h>

#include <array>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/spec/json_object.h"
#include "layline/spec/read_model.h"
#include "layline/spec/registry.h"
#include "layline/trainer/config/names.h"
#include "layline/trainer/config/overrides.h"
#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config {
namespace {

using spec::JsonObject;

constexpr int64_t kMaxFileBytes = 8 << 20;
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr int64_t kMaxSeed = (int64_t{1} << 53) - 1;  // the last one whose neighbours are numbers of JSON too
constexpr double kMaxTokens = 1e18;                   // 64 bits count them, and bytes of a few of them
constexpr double kMaxSeconds = 1e9;

// Readers of keys that may be missing: the member keeps its default then.
void read(JsonObject& object, const char* key, int64_t& member, int64_t lower, int64_t upper) {
  if (object.has_value(key)) member = object.whole(key, lower, upper);
}

void read(JsonObject& object, const char* key, double& member, double lower, double upper) {
  if (object.has_value(key)) member = object.number(key, lower, upper);
}

void read(JsonObject& object, const char* key, std::string& member) {
  if (object.has_value(key)) member = object.name(key);
}

template <typename Enum, typename Names>
void read(JsonObject& object, const char* key, Enum& member, const Names& names) {
  if (object.has_value(key)) member = static_cast<Enum>(object.choice(key, names));
}

// Messages on the model as a whole name its key too.
spec::Model read_inline_model(JsonObject object, const std::string& where) {
  try {
    return spec::read_model(std::move(object), where);
  } catch (const base::InputError& error) {
    const std::string message = error.what(), of_whole = where + ": ";
    if (!message.starts_with(of_whole) || message.starts_with(of_whole + "$")) throw;
    throw base::InputError(of_whole + "$.model", message.substr(of_whole.size()));
  }
}

spec::Model read_run_model(JsonObject& object, const std::string& where) {
  if (object.is_object("model")) return read_inline_model(object.object("model"), where);
  const std::string name = object.name("model");
  if (name.empty()) return {};  // finish() says that it is missing
  try {
    return spec::get_model(name);
  } catch (const base::InputError& error) {
    object.fail("model", error.what());
  }
}

std::vector<DataSource> read_sources(JsonObject& object, const char* key) {
  if (!object.is_list(key)) return {{object.name(key), 1}};
  std::vector<DataSource> sources;
  for (JsonObject& item : object.objects(key)) {
    DataSource& source = sources.emplace_back();
    source.path = item.name("path");
    read(item, "weight", source.weight, 1e-9, 1e9);
    item.finish();
  }
  if (sources.empty()) object.fail(key, "found [], want at least one source");
  return sources;
}

DataConfig read_data(JsonObject object) {
  DataConfig data;
  data.train = read_sources(object, "train");
  if (object.has_value("valid")) data.valid = read_sources(object, "valid");
  read(object, "tokenizer", data.tokenizer);
  read(object, "order", data.order, kDataOrderNames);
  read(object, "valid_every_steps", data.valid_every_steps, 0, kMaxCount);
  object.finish();
  if (data.valid_every_steps > 0 && data.valid.empty()) {
    object.fail("valid_every_steps", "is there, but $.data.valid is not");
  }
  return data;
}

OptimizerConfig read_optimizer(JsonObject object) {
  OptimizerConfig optimizer;
  read(object, "learning_rate", optimizer.learning_rate, 0, 1e6);
  read(object, "warmup_steps", optimizer.warmup_steps, 0, kMaxCount);
  read(object, "decay", optimizer.decay, kDecayNames);
  read(object, "min_learning_rate", optimizer.min_learning_rate, 0, 1e6);
  if (object.has_value("betas")) {
    const std::vector<double> betas = object.numbers("betas", 0, 1);
    if (betas.size() != 2 || betas[0] >= 1 || betas[1] >= 1) {
      object.fail("betas", "want two numbers from 0 to below 1, as in [0.9, 0.95]");
    }
    optimizer.beta1 = betas[0];
    optimizer.beta2 = betas[1];
  }
  read(object, "epsilon", optimizer.epsilon, 0, 1);
  read(object, "weight_decay", optimizer.weight_decay, 0, 1e6);
  read(object, "clip", optimizer.clip, 0, 1e12);
  object.finish();
  if (optimizer.min_learning_rate > optimizer.learning_rate) {
    object.fail("min_learning_rate", fmt::format("found {}, want at most learning_rate, {}",
                                                 optimizer.min_learning_rate, optimizer.learning_rate));
  }
  return optimizer;
}

// true, false, or "previous".
Resume read_resume(JsonObject& object) {
  if (object.is_flag("resume")) return object.flag("resume") ? Resume::kNewest : Resume::kNo;
  if (object.text("resume") != "previous") object.fail("resume", "want true, false or \"previous\"");
  return Resume::kPrevious;
}

CheckpointConfig read_checkpoint(JsonObject object) {
  CheckpointConfig checkpoint;
  read(object, "directory", checkpoint.directory);
  read(object, "every_steps", checkpoint.every_steps, 0, kMaxCount);
  read(object, "keep", checkpoint.keep, 1, kMaxCount);
  if (object.has_value("resume")) checkpoint.resume = read_resume(object);
  read(object, "on_error", checkpoint.on_error, kOnSaveErrorNames);
  object.finish();
  if (!checkpoint.directory.empty()) return checkpoint;
  if (checkpoint.every_steps > 0) object.fail("every_steps", "is there, but directory is not");
  if (checkpoint.resume != Resume::kNo) object.fail("resume", "is there, but directory is not");
  return checkpoint;
}

RunConfig read_run(JsonObject object, const std::string& where) {
  RunConfig config;
  config.where = where;
  config.model = read_run_model(object, where);
  read(object, "load", config.load);
  read(object, "layout", config.layout);
  read(object, "cluster", config.cluster);
  config.sequence_length = object.whole("sequence_length", 1, int64_t{1} << 32);
  config.global_batch = object.whole("global_batch", 1, int64_t{1} << 32);
  config.steps = object.whole("steps", 1, kMaxCount);
  read(object, "precision", config.precision, kPrecisionNames);
  read(object, "device", config.device, kDeviceNames);
  read(object, "seed", config.seed, 0, kMaxSeed);
  if (object.has_value("data")) config.data = read_data(object.object("data"));
  if (object.has_value("optimizer")) config.optimizer = read_optimizer(object.object("optimizer"));
  if (object.has_value("checkpoint")) config.checkpoint = read_checkpoint(object.object("checkpoint"));
  read(object, "metrics", config.metrics);
  if (object.has_value("memory_limit_bytes")) {
    config.memory_limit_bytes = object.whole("memory_limit_bytes", 1, int64_t{1} << 50);
  }
  read(object, "timeout_seconds", config.timeout_seconds, 1e-3, kMaxSeconds);
  if (object.has_value("stop_after_seconds")) {
    config.stop_after_seconds = object.number("stop_after_seconds", 0, kMaxSeconds);
  }
  object.finish();
  if (config.data.train.empty()) object.fail("data", "is missing: want at least {\"train\": PATH}");
  if (config.tokens_per_step() * static_cast<double>(config.steps) > kMaxTokens) {
    object.fail("steps", fmt::format("found {}, of {:g} tokens each; want at most {:g} tokens in all", config.steps,
                                     config.tokens_per_step(), kMaxTokens));
  }
  return config;
}

}  // namespace

RunConfig parse_run_config(std::string_view text, const std::string& where, const std::vector<std::string>& overrides) {
  const nlohmann::json file = spec::parse_strict_json(text, where);
  nlohmann::json value = file;
  apply_overrides(value, overrides);
  try {
    RunConfig config = read_run(JsonObject(value, where), where);
    config.overrides = overrides;
    return config;
  } catch (const base::InputError& error) {
    const std::string message = error.what();
    const std::string flag = override_in_message(message, where, overrides, &file);
    if (flag.empty()) throw;
    throw base::InputError(fmt::format("--set {}", flag), message.substr(where.size() + 2));
  }
}

std::string place_of(const RunConfig& config, std::string_view key) {
  const std::string place = fmt::format("{}: $.{}", config.where, key);
  const std::string flag = override_in_message(place, config.where, config.overrides, nullptr);
  return flag.empty() ? place : fmt::format("--set {}: $.{}", flag, key);
}

RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_run_config(base::read_file(path, kMaxFileBytes), path, overrides);
}

}  // namespace layline::trainer::config
