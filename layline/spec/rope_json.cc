#include "layline/spec/rope_json.h"

#include <fmt/format.h>

#include <array>

namespace layline::spec {
namespace {

constexpr std::array<std::string_view, 3> kScalingNames = {"none", "linear", "llama3"};  // index = RopeScaling
constexpr double kMaxFactor = 1e6;
constexpr double kMaxTheta = 1e15;

void set_other(Rope& rope, const std::string& name) {
  rope.scaling = RopeScaling::kOther;
  rope.other_scaling = name;
}

void set_scaling(Rope& rope, const std::string& huggingface_name) {
  if (huggingface_name == "default") return;
  if (huggingface_name == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (huggingface_name == "llama3") {
    rope.scaling = RopeScaling::kLlama3;
  } else {
    set_other(rope, huggingface_name);
  }
}

// The numbers of rope.scaling, by the names that both kinds of file have.
void read_factors(Rope& rope, JsonObject& object) {
  if (rope.scaling != RopeScaling::kLinear && rope.scaling != RopeScaling::kLlama3) return;
  rope.factor = object.number("factor", 1, kMaxFactor);
  if (rope.scaling == RopeScaling::kLinear) return;
  rope.low_freq_factor = object.number("low_freq_factor", 1e-6, kMaxFactor);
  rope.high_freq_factor = object.number("high_freq_factor", 1e-6, kMaxFactor);
  rope.original_max_position_embeddings = object.whole("original_max_position_embeddings", 1, int64_t{1} << 40);
  object.require_all();
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    object.fail("high_freq_factor", fmt::format("found {}, want more than low_freq_factor, {}", rope.high_freq_factor,
                                                rope.low_freq_factor));
  }
}

bool has_object_inside(JsonObject& object) {
  for (const char* kind_of_layer : {"full_attention", "sliding_attention"}) {
    if (object.is_object(kind_of_layer)) return true;
  }
  return false;
}

void read_huggingface_scaling(Rope& rope, JsonObject object) {
  if (has_object_inside(object)) return set_other(rope, "a kind for each kind of layer");
  if (object.has_value("rope_theta")) rope.theta = object.number("rope_theta", 1, kMaxTheta);
  std::string name = "default";
  if (object.has_value("rope_type")) {
    name = object.name("rope_type");
  } else if (object.has_value("type")) {
    name = object.name("type");
  }
  set_scaling(rope, name);
  read_factors(rope, object);
  object.require_all();
}

void refuse_partial_rotation(Rope& rope, JsonObject& object) {
  if (object.has_value("partial_rotary_factor") && object.number("partial_rotary_factor", 0, 1) < 1) {
    set_other(rope, "partial_rotary_factor");
  }
}

}  // namespace

Rope read_rope(JsonObject object) {
  Rope rope;
  if (object.has("theta")) rope.theta = object.number("theta", 1, kMaxTheta);
  if (object.has("scaling")) rope.scaling = static_cast<RopeScaling>(object.choice("scaling", kScalingNames));
  if (object.has("other_scaling")) {
    if (rope.scaling != RopeScaling::kNone) object.fail("other_scaling", "is there beside scaling");
    set_other(rope, object.name("other_scaling"));
  }
  read_factors(rope, object);
  object.finish();
  return rope;
}

Rope read_huggingface_rope(JsonObject& config) {
  Rope rope;
  if (config.has_value("rope_theta")) rope.theta = config.number("rope_theta", 1, kMaxTheta);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has_value(key)) continue;
    JsonObject parameters = config.object(key);
    read_huggingface_scaling(rope, parameters);
    refuse_partial_rotation(rope, parameters);
    break;
  }
  refuse_partial_rotation(rope, config);
  return rope;
}

nlohmann::ordered_json json_of(const Rope& rope) {
  nlohmann::ordered_json json;
  json["theta"] = rope.theta;
  if (rope.scaling == RopeScaling::kOther) {
    json["other_scaling"] = rope.other_scaling;
  } else if (rope.scaling != RopeScaling::kNone) {
    json["scaling"] = kScalingNames[static_cast<size_t>(rope.scaling)];
    json["factor"] = rope.factor;
  }
  if (rope.scaling == RopeScaling::kLlama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
    json["original_max_position_embeddings"] = rope.original_max_position_embeddings;
  }
  return json;
}

}  // namespace layline::spec
