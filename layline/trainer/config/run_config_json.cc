#include <nlohmann/json.hpp>

#include "layline/spec/registry.h"
#include "layline/trainer/config/names.h"
#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config {
namespace {

using nlohmann::ordered_json;

template <typename Enum, typename Names>
std::string_view text_of(Enum value, const Names& names) {
  return names[static_cast<size_t>(value)];
}

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

template <typename Number>
ordered_json number_or_null(const std::optional<Number>& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json json_of(const std::vector<DataSource>& sources) {
  if (sources.empty()) return {};
  ordered_json list = ordered_json::array();
  for (const DataSource& source : sources) list.push_back({{"path", source.path}, {"weight", source.weight}});
  return list;
}

ordered_json json_of(const DataConfig& data) {
  return {{"train", json_of(data.train)},
          {"valid", json_of(data.valid)},
          {"tokenizer", data.tokenizer},
          {"order", text_of(data.order, kDataOrderNames)},
          {"valid_every_steps", data.valid_every_steps}};
}

ordered_json json_of(const OptimizerConfig& optimizer) {
  return {{"learning_rate", optimizer.learning_rate},
          {"warmup_steps", optimizer.warmup_steps},
          {"decay", text_of(optimizer.decay, kDecayNames)},
          {"min_learning_rate", optimizer.min_learning_rate},
          {"betas", ordered_json::array({optimizer.beta1, optimizer.beta2})},
          {"epsilon", optimizer.epsilon},
          {"weight_decay", optimizer.weight_decay},
          {"clip", optimizer.clip}};
}

ordered_json json_of(const CheckpointConfig& checkpoint) {
  ordered_json json = {{"directory", text_or_null(checkpoint.directory)},
                       {"every_steps", checkpoint.every_steps},
                       {"keep", checkpoint.keep}};
  if (checkpoint.resume == Resume::kPrevious) {
    json["resume"] = "previous";
  } else {
    json["resume"] = checkpoint.resume == Resume::kNewest;
  }
  json["on_error"] = text_of(checkpoint.on_error, kOnSaveErrorNames);
  return json;
}

}  // namespace

std::string_view name_of(Precision precision) { return text_of(precision, kPrecisionNames); }

std::string_view name_of(Device device) { return text_of(device, kDeviceNames); }

std::string to_json(const RunConfig& config) {
  ordered_json json;
  json["model"] = ordered_json::parse(spec::to_json(config.model));
  json["load"] = text_or_null(config.load);
  json["layout"] = config.layout;
  json["cluster"] = text_or_null(config.cluster);
  json["sequence_length"] = config.sequence_length;
  json["global_batch"] = config.global_batch;
  json["steps"] = config.steps;
  json["precision"] = name_of(config.precision);
  json["device"] = name_of(config.device);
  json["seed"] = config.seed;
  json["data"] = json_of(config.data);
  json["optimizer"] = json_of(config.optimizer);
  json["checkpoint"] = json_of(config.checkpoint);
  json["metrics"] = text_or_null(config.metrics);
  json["memory_limit_bytes"] = number_or_null(config.memory_limit_bytes);
  json["timeout_seconds"] = config.timeout_seconds;
  json["stop_after_seconds"] = number_or_null(config.stop_after_seconds);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::trainer::config
