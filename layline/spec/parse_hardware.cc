// GPUs and clusters from JSON.

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/spec/json_object.h"
#include "layline/spec/parse_calibration.h"
#include "layline/spec/parse_measurements.h"
#include "layline/spec/registry.h"

namespace layline::spec {
namespace {

constexpr double kMaxRate = 1e19;

// Every number of a hardware file says where it is from, under its own key or "*".
void check_sources(const JsonObject& object, const std::map<std::string, std::string>& sources,
                   const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (sources.count(key) == 0 && sources.count("*") == 0) {
      object.fail("sources", fmt::format("no source for \"{}\" (nor for \"*\")", key));
    }
  }
}

struct GpuNumber {
  const char* key;
  double Gpu::* member;
  double lower;
};

constexpr GpuNumber kGpuNumbers[] = {
    {"bf16_flops_per_second", &Gpu::bf16_flops_per_second, 0},
    {"fp16_flops_per_second", &Gpu::fp16_flops_per_second, 0},
    {"fp8_flops_per_second", &Gpu::fp8_flops_per_second, 0},
    {"fp32_flops_per_second", &Gpu::fp32_flops_per_second, 0},
    {"memory_bytes", &Gpu::memory_bytes, 1},
    {"memory_bytes_per_second", &Gpu::memory_bytes_per_second, 1},
    {"l2_bytes", &Gpu::l2_bytes, 0},
    {"nvlink_bytes_per_second", &Gpu::nvlink_bytes_per_second, 0},
    {"pcie_bytes_per_second", &Gpu::pcie_bytes_per_second, 0},
};

Gpu read_gpu(JsonObject object) {
  Gpu gpu;
  gpu.name = object.name("name");
  gpu.title = object.text("title");
  gpu.family = object.text("family");
  gpu.aliases = object.texts("aliases");
  std::vector<std::string> keys = {"num_sms"};
  for (const GpuNumber& number : kGpuNumbers) {
    gpu.*(number.member) = object.number(number.key, number.lower, kMaxRate);
    keys.emplace_back(number.key);
  }
  gpu.num_sms = static_cast<int>(object.whole("num_sms", 1, 100000));
  gpu.sources = object.text_map("sources");
  object.finish();
  check_sources(object, gpu.sources, keys);
  if (std::max({gpu.bf16_flops_per_second, gpu.fp16_flops_per_second, gpu.fp32_flops_per_second}) <= 0) {
    object.fail("bf16_flops_per_second", "found no peak above 0 of any precision");
  }
  return gpu;
}

// A cluster names a shipped GPU; reading files that a file names would make its meaning depend on where it is read.
Gpu shipped_gpu(const JsonObject& object, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) {
    object.fail("gpu",
                fmt::format("found \"{}\", want the name of a shipped GPU, or the GPU itself as an object", name));
  }
  try {
    return get_gpu(name);
  } catch (const base::InputError& error) {
    object.fail("gpu", error.what());
  }
}

nlohmann::ordered_json json_of(const Gpu& gpu) {
  nlohmann::ordered_json json;
  json["name"] = gpu.name;
  json["title"] = gpu.title;
  json["family"] = gpu.family;
  json["aliases"] = gpu.aliases;
  for (const GpuNumber& number : kGpuNumbers) json[number.key] = gpu.*(number.member);
  json["num_sms"] = gpu.num_sms;
  json["sources"] = gpu.sources;
  return json;
}

}  // namespace

Gpu parse_gpu(std::string_view json, const std::string& where) {
  const nlohmann::json value = parse_strict_json(json, where);
  return read_gpu(JsonObject(value, where));
}

Cluster parse_cluster(std::string_view json, const std::string& where) {
  const nlohmann::json value = parse_strict_json(json, where);
  JsonObject object(value, where);
  Cluster cluster;
  cluster.name = object.name("name");
  cluster.title = object.text("title");
  cluster.aliases = object.texts("aliases");
  if (object.has("interconnect_aliases")) cluster.interconnect_aliases = object.texts("interconnect_aliases");
  cluster.gpus_per_node = static_cast<int>(object.whole("gpus_per_node", 1, 100000));
  cluster.intra_bytes_per_second = object.number("intra_bytes_per_second", 1, kMaxRate);
  cluster.intra_latency_seconds = object.number("intra_latency_seconds", 0, 1);
  cluster.inter_bytes_per_second_per_node = object.number("inter_bytes_per_second_per_node", 1, kMaxRate);
  cluster.inter_bytes_per_second_per_gpu = object.number("inter_bytes_per_second_per_gpu", 1, kMaxRate);
  cluster.inter_latency_seconds = object.number("inter_latency_seconds", 0, 1);
  cluster.max_nodes = static_cast<int>(object.whole("max_nodes", 0, 1'000'000));
  cluster.sources = object.text_map("sources");
  if (object.has_value("measured")) {
    cluster.measured = std::make_shared<const Measurements>(read_measurements(object.object("measured")));
  }
  if (object.has_value("calibration")) {
    cluster.calibration = std::make_shared<const Calibration>(read_calibration(object.object("calibration")));
  }
  const std::string gpu_name = object.is_object("gpu") ? "" : object.name("gpu");
  if (object.is_object("gpu")) cluster.gpu = read_gpu(object.object("gpu"));
  object.finish();
  if (!gpu_name.empty()) cluster.gpu = shipped_gpu(object, gpu_name);
  check_sources(object, cluster.sources,
                {"gpus_per_node", "intra_bytes_per_second", "intra_latency_seconds", "inter_bytes_per_second_per_node",
                 "inter_bytes_per_second_per_gpu", "inter_latency_seconds"});
  return cluster;
}

std::string to_json(const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["name"] = cluster.name;
  json["title"] = cluster.title;
  json["aliases"] = cluster.aliases;
  json["interconnect_aliases"] = cluster.interconnect_aliases;
  json["gpu"] = json_of(cluster.gpu);
  json["gpus_per_node"] = cluster.gpus_per_node;
  json["intra_bytes_per_second"] = cluster.intra_bytes_per_second;
  json["intra_latency_seconds"] = cluster.intra_latency_seconds;
  json["inter_bytes_per_second_per_node"] = cluster.inter_bytes_per_second_per_node;
  json["inter_bytes_per_second_per_gpu"] = cluster.inter_bytes_per_second_per_gpu;
  json["inter_latency_seconds"] = cluster.inter_latency_seconds;
  json["max_nodes"] = cluster.max_nodes;
  json["sources"] = cluster.sources;
  if (cluster.calibration) json["calibration"] = json_of(*cluster.calibration);
  if (cluster.measured) json["measured"] = json_of(*cluster.measured);
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::spec
