#include "layline/spec/calibration.h"

#include <fmt/format.h>

#include "layline/base/error.h"
#include "layline/spec/json_object.h"
#include "layline/spec/parse_calibration.h"
#include "layline/spec/registry.h"

namespace layline::spec {
namespace {

std::vector<std::string> coefficient_names() {
  std::vector<std::string> names;
  for (const CoefficientInfo& info : coefficient_table()) names.emplace_back(info.name);
  return names;
}

LeftOutError read_left_out(JsonObject object) {
  LeftOutError left;
  left.name = object.text("name");
  left.num_runs = object.whole("num_runs", 0, int64_t{1} << 40);
  left.mean_abs_relative_error = object.number("mean_abs_relative_error", 0, 1e9);
  left.median_abs_relative_error = object.number("median_abs_relative_error", 0, 1e9);
  object.finish();
  return left;
}

MeasuredJob read_measured(JsonObject& object) {
  MeasuredJob job;
  job.job = object.text("job");
  job.step_seconds = object.number_map("step_seconds");
  object.finish();
  return job;
}

}  // namespace

Coefficients Calibration::coefficients() const {
  Coefficients coefficients;
  for (const auto& [key, value] : values) {
    const CoefficientInfo* info = find_coefficient(key);
    if (info == nullptr) {
      throw base::InputError("calibration " + this->name,
                             base::unknown_name_message("coefficient", key, coefficient_names()));
    }
    if (!(value >= info->lower && value <= info->upper)) {
      throw base::InputError("calibration " + this->name,
                             fmt::format("{} is {}, want {} to {}", key, value, info->lower, info->upper));
    }
    coefficients.*(info->member) = value;
  }
  return coefficients;
}

Calibration read_calibration(JsonObject object) {
  Calibration calibration;
  calibration.name = object.name("name");
  calibration.engine = object.text("engine");
  calibration.gpu = object.text("gpu");
  calibration.sources = object.texts("sources");
  calibration.num_timed_runs = object.whole("num_timed_runs", 0, int64_t{1} << 40);
  calibration.num_verdict_runs = object.whole("num_verdict_runs", 0, int64_t{1} << 40);
  calibration.relative_error_bar = object.number("relative_error_bar", 0, 1e6);
  calibration.memory_relative_sigma = object.number("memory_relative_sigma", 1e-6, 10);
  calibration.mean_abs_relative_error = object.number("mean_abs_relative_error", 0, 1e9);
  calibration.median_abs_relative_error = object.number("median_abs_relative_error", 0, 1e9);
  calibration.values = object.number_map("values");
  for (JsonObject& left : object.objects("left_out")) calibration.left_out.push_back(read_left_out(left));
  if (object.has("measured")) {
    for (JsonObject& job : object.objects("measured")) calibration.measured.push_back(read_measured(job));
  }
  object.finish();
  try {
    calibration.coefficients();
  } catch (const base::InputError& error) {
    object.fail("values", error.what());
  }
  return calibration;
}

Calibration parse_calibration(std::string_view json, const std::string& where) {
  const nlohmann::json value = parse_strict_json(json, where);
  return read_calibration(JsonObject(value, where));
}

nlohmann::ordered_json json_of(const Calibration& calibration) {
  nlohmann::ordered_json json;
  json["name"] = calibration.name;
  json["engine"] = calibration.engine;
  json["gpu"] = calibration.gpu;
  json["sources"] = calibration.sources;
  json["num_timed_runs"] = calibration.num_timed_runs;
  json["num_verdict_runs"] = calibration.num_verdict_runs;
  json["relative_error_bar"] = calibration.relative_error_bar;
  json["memory_relative_sigma"] = calibration.memory_relative_sigma;
  json["mean_abs_relative_error"] = calibration.mean_abs_relative_error;
  json["median_abs_relative_error"] = calibration.median_abs_relative_error;
  json["values"] = calibration.values;
  json["left_out"] = nlohmann::ordered_json::array();
  for (const LeftOutError& left : calibration.left_out) {
    json["left_out"].push_back({{"name", left.name},
                                {"num_runs", left.num_runs},
                                {"mean_abs_relative_error", left.mean_abs_relative_error},
                                {"median_abs_relative_error", left.median_abs_relative_error}});
  }
  json["measured"] = nlohmann::ordered_json::array();
  for (const MeasuredJob& job : calibration.measured) {
    json["measured"].push_back({{"job", job.job}, {"step_seconds", job.step_seconds}});
  }
  return json;
}

std::string to_json(const Calibration& calibration) {
  return json_of(calibration).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::spec
