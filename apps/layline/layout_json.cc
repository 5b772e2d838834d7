#include "apps/layline/layout_json.h"

#include "layline/layout/layout_text.h"

namespace layline::app {

using nlohmann::ordered_json;

ordered_json json_of(const memory::StageMemory& memory) {
  ordered_json json = ordered_json::object();
  for (size_t i = 0; i < memory::kNumTerms; ++i) {
    if (memory.bytes[i] != 0) json[std::string(memory::kTermNames[i])] = memory.bytes[i];
  }
  return json;
}

ordered_json json_of(const spec::Job& job, const search::PricedLayout& priced) {
  const cost::StepPrice& price = priced.price;
  ordered_json json;
  json["layout"] = layout::to_text(priced.layout, layout::text_defaults(job.engine));
  json["predicted_step_seconds"] = price.step_seconds;
  if (priced.measured_seconds) json["measured_step_seconds"] = *priced.measured_seconds;
  json["relative_error_bar"] = job.calibration.relative_error_bar;
  json["mfu"] = cost::model_flops_utilization(job, price.step_seconds);
  json["tokens_per_second_per_gpu"] = job.tokens_per_step() / price.step_seconds / static_cast<double>(job.num_gpus);
  json["peak_memory_bytes_by_stage"] = ordered_json::array();
  cost::Pricer pricer(job);
  for (const cost::StagePrice& stage : pricer.stages(priced.layout)) {
    json["peak_memory_bytes_by_stage"].push_back(stage.memory.total());
  }
  json["margin_bytes"] = price.capacity_bytes - price.peak_memory_bytes;
  json["fit_probability"] = price.fit_probability;
  json["breakdown_seconds"] = ordered_json::object();
  for (size_t i = 0; i < cost::kNumKinds; ++i) {
    json["breakdown_seconds"][std::string(cost::kKindNames[i])] = price.seconds[i];
  }
  return json;
}

ordered_json json_of(const spec::Job& job) {
  ordered_json json;
  json["model"] = job.model.name;
  json["num_parameters"] = job.model.num_parameters();
  json["cluster"] = job.cluster.name;
  json["gpu"] = job.cluster.gpu.name;
  json["num_gpus"] = job.num_gpus;
  json["global_batch"] = job.global_batch;
  json["sequence_length"] = job.sequence_length;
  json["precision"] = spec::name_of(job.precision);
  return json;
}

std::string json_text(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::app
