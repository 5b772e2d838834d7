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

bool contains(const std::string& text, const std::string& part) {
  return lower(text).find(lower(part)) != std::string::npos;
}

// A kind of spec: how it is called in messages, read, and by which other names it is known.
template <typename Spec>
struct Kind {
  SpecKind kind;
  const char* name;
  Spec (*parse)(std::string_view json, const std::string& where);
  std::vector<std::string> (*aliases_of)(const Spec&);
};

template <typename Spec>
std::vector<std::string> own_aliases(const Spec& spec) {
  return spec.aliases;
}

template <typename Spec>
std::vector<std::string> no_aliases(const Spec&) {
  return {};
}

// A GPU's name stands for the cluster that is called like it.
std::vector<std::string> cluster_aliases(const Cluster& cluster) {
  std::vector<std::string> aliases = cluster.aliases;
  if (cluster.name == cluster.gpu.name) {
    aliases.insert(aliases.end(), cluster.gpu.aliases.begin(), cluster.gpu.aliases.end());
  }
  return aliases;
}

constexpr Kind<Model> kModels = {SpecKind::kModel, "model", parse_model, own_aliases<Model>};
constexpr Kind<Gpu> kGpus = {SpecKind::kGpu, "GPU", parse_gpu, own_aliases<Gpu>};
constexpr Kind<Cluster> kClusters = {SpecKind::kCluster, "cluster", parse_cluster, cluster_aliases};
constexpr Kind<Engine> kEngines = {SpecKind::kEngine, "engine", parse_engine, no_aliases<Engine>};
constexpr Kind<Calibration> kCalibrations = {SpecKind::kCalibration, "calibration", parse_calibration,
                                             no_aliases<Calibration>};

// All shipped specs of a kind, read once: they are constants of the program, and run records ask for them by the
// thousand.
template <typename Spec>
const std::vector<Spec>& all_shipped(const Kind<Spec>& kind) {
  static const std::vector<Spec> specs = [&] {
    std::vector<Spec> parsed;
    for (const ShippedSpec& spec : shipped_specs()) {
      if (spec.kind == kind.kind) parsed.push_back(kind.parse(spec.json, fmt::format("shipped {}", spec.name)));
    }
    return parsed;
  }();
  return specs;
}

// nullptr when no shipped spec has this name or alias.
template <typename Spec>
const Spec* find_shipped(const Kind<Spec>& kind, const std::string& name) {
  const std::string wanted = lower(name);
  for (const Spec& spec : all_shipped(kind)) {
    if (spec.name == wanted) return &spec;
  }
  for (const Spec& spec : all_shipped(kind)) {
    for (const std::string& alias : kind.aliases_of(spec)) {
      if (lower(alias) == wanted) return &spec;
    }
  }
  return nullptr;
}

// Names first; aliases only when none of the names is near.
template <typename Spec>
[[noreturn]] void throw_unknown(const Kind<Spec>& kind, const std::string& name) {
  std::vector<std::string> names, all;
  for (const Spec& spec : all_shipped(kind)) {
    names.push_back(spec.name);
    const std::vector<std::string> aliases = kind.aliases_of(spec);
    all.insert(all.end(), aliases.begin(), aliases.end());
  }
  all.insert(all.end(), names.begin(), names.end());
  const bool near = !base::nearest_name(name, names).empty() || base::nearest_name(name, all).empty();
  throw base::InputError(fmt::format("{}; `layline specs list` shows all, or give a {}",
                                     base::unknown_name_message(kind.name, name, near ? names : all),
                                     kind.kind == SpecKind::kModel ? "Hugging Face config.json" : "file"));
}

template <typename Spec>
Spec get(const Kind<Spec>& kind, const std::string& name) {
  std::error_code ignored;
  const bool is_file = is_path(name) && std::filesystem::exists(name, ignored);
  if (!is_file) {
    if (const Spec* spec = find_shipped(kind, name)) return *spec;
    if (!is_path(name)) throw_unknown(kind, name);
  }
  return kind.parse(base::read_file(name, kMaxSpecBytes), name);
}

}  // namespace

Model get_model(const std::string& name_or_path) {
  std::error_code ignored;
  const bool may_be_folder = is_path(name_or_path) || find_shipped(kModels, name_or_path) == nullptr;
  if (may_be_folder && std::filesystem::is_directory(name_or_path, ignored)) {
    return get(kModels, (std::filesystem::path(name_or_path) / "config.json").string());
  }
  return get(kModels, name_or_path);
}

Gpu get_gpu(const std::string& name_or_path) { return get(kGpus, name_or_path); }

Cluster get_cluster(const std::string& name_or_path) { return get(kClusters, name_or_path); }

Engine get_engine(const std::string& name_or_path) { return get(kEngines, name_or_path); }

Calibration get_calibration(const std::string& name_or_path) {
  if (name_or_path == "none") {
    Calibration none;
    none.name = "none";
    return none;
  }
  return get(kCalibrations, name_or_path);
}

Calibration default_calibration(const Engine& engine, const Gpu& gpu) {
  const std::string name = engine.name + "-" + gpu.family;
  return get_calibration(find_shipped(kCalibrations, name) != nullptr ? name : "none");
}

Calibration default_calibration(const Engine& engine, const Cluster& cluster) {
  if (cluster.calibration && cluster.calibration->engine == engine.name) return *cluster.calibration;
  return default_calibration(engine, cluster.gpu);
}

Cluster cluster_for_hardware(const std::string& hardware, const std::string& interconnect) {
  const Gpu gpu = get_gpu(hardware);
  const Cluster* best = nullptr;
  size_t best_length = 0;
  for (const Cluster& cluster : all_shipped(kClusters)) {
    if (cluster.gpu.name != gpu.name) continue;
    if (cluster.name == gpu.name && best == nullptr) best = &cluster;
    for (const std::string& part : cluster.interconnect_aliases) {
      if (part.size() <= best_length || !contains(interconnect, part)) continue;
      best = &cluster;
      best_length = part.size();
    }
  }
  if (best == nullptr) throw base::InputError(fmt::format("no cluster of {} is known", gpu.title));
  return *best;
}

}  // namespace layline::spec
