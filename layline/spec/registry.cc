#include "layline/spec/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::spec {
namespace {

constexpr int64_t kMaxSpecBytes = 8 << 20;

bool is_path(const std::string& text) {
  const bool json = text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0;
  return text.find('/') != std::string::npos || json;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string where_of(const ShippedSpec& spec) { return fmt::format("shipped {}", spec.name); }

const ShippedSpec* find_shipped(SpecKind kind, const std::string& name) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind == kind && spec.name == name) return &spec;
  }
  return nullptr;
}

std::vector<std::string> shipped_names(SpecKind kind) {
  std::vector<std::string> names;
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind == kind) names.emplace_back(spec.name);
  }
  return names;
}

// The shipped spec of this name; `parse` reads aliases only when no name matches.
template <typename Spec, typename Parse>
Spec get(SpecKind kind, const char* kind_name, const std::string& name, const Parse& parse,
         std::vector<std::string> (*aliases_of)(const Spec&)) {
  const std::string wanted = lower(name);
  if (is_path(name)) return parse(base::read_file(name, kMaxSpecBytes), name);
  if (const ShippedSpec* spec = find_shipped(kind, wanted)) return parse(spec->json, where_of(*spec));
  std::vector<std::string> known = shipped_names(kind);
  if (aliases_of != nullptr) {
    for (const std::string& candidate : shipped_names(kind)) {
      const ShippedSpec* shipped = find_shipped(kind, candidate);
      Spec spec = parse(shipped->json, where_of(*shipped));
      for (const std::string& alias : aliases_of(spec)) {
        if (lower(alias) == wanted) return spec;
        known.push_back(alias);
      }
    }
  }
  throw base::InputError(fmt::format("{}; `layline specs list` shows all, or give a file",
                                     base::unknown_name_message(kind_name, name, known)));
}

}  // namespace

Model get_model(const std::string& name_or_path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(name_or_path, ignored)) {
    const std::string file = (std::filesystem::path(name_or_path) / "config.json").string();
    return parse_model(base::read_file(file, kMaxSpecBytes), file);
  }
  return get<Model>(SpecKind::kModel, "model", name_or_path, parse_model, nullptr);
}

Gpu get_gpu(const std::string& name_or_path) {
  return get<Gpu>(SpecKind::kGpu, "GPU", name_or_path, parse_gpu,
                  [](const Gpu& gpu) { return gpu.aliases; });
}

Cluster get_cluster(const std::string& name_or_path) {
  return get<Cluster>(SpecKind::kCluster, "cluster", name_or_path, parse_cluster, [](const Cluster& cluster) {
    std::vector<std::string> aliases = cluster.aliases;
    if (cluster.name == cluster.gpu.name) {
      aliases.insert(aliases.end(), cluster.gpu.aliases.begin(), cluster.gpu.aliases.end());
    }
    return aliases;
  });
}

Engine get_engine(const std::string& name_or_path) {
  return get<Engine>(SpecKind::kEngine, "engine", name_or_path, parse_engine, nullptr);
}

Calibration get_calibration(const std::string& name_or_path) {
  if (name_or_path == "none") {
    Calibration none;
    none.name = "none";
    return none;
  }
  return get<Calibration>(SpecKind::kCalibration, "calibration", name_or_path, parse_calibration, nullptr);
}

Calibration default_calibration(const Engine& engine, const Gpu& gpu) {
  const std::string name = engine.name + "-" + gpu.family;
  return get_calibration(find_shipped(SpecKind::kCalibration, name) != nullptr ? name : "none");
}

Cluster cluster_for_hardware(const std::string& hardware, const std::string& interconnect) {
  const Gpu gpu = get_gpu(hardware);
  std::string best = gpu.name;
  size_t best_length = 0;
  for (const std::string& name : shipped_names(SpecKind::kCluster)) {
    const ShippedSpec* shipped = find_shipped(SpecKind::kCluster, name);
    // Parsing is dear in a loop over runs: look at the text for the GPU first.
    if (shipped->json.find("\"" + gpu.name + "\"") == std::string_view::npos) continue;
    const Cluster cluster = parse_cluster(shipped->json, where_of(*shipped));
    if (cluster.gpu.name != gpu.name) continue;
    for (const std::string& part : cluster.interconnect_aliases) {
      if (interconnect.find(part) != std::string::npos && part.size() > best_length) {
        best = cluster.name;
        best_length = part.size();
      }
    }
  }
  return get_cluster(best);
}

}  // namespace layline::spec
