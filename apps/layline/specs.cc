#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

using spec::ShippedSpec;
using spec::SpecKind;

constexpr std::array<std::string_view, 5> kKindNames = {"model", "gpu", "cluster", "engine", "calibration"};

std::string_view kind_name(SpecKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

// One line on what a shipped spec is.
std::string summary(const ShippedSpec& shipped) {
  const std::string where(shipped.name);
  switch (shipped.kind) {
    case SpecKind::kModel: {
      const spec::Model m = spec::parse_model(shipped.json, where);
      return fmt::format("{}, {} parameters", m.title,
                         base::format_short_count(static_cast<double>(m.num_parameters())));
    }
    case SpecKind::kGpu: {
      const spec::Gpu g = spec::parse_gpu(shipped.json, where);
      const double peak = std::max(g.bf16_flops_per_second, g.fp16_flops_per_second);
      return fmt::format("{}, {:.4g} TFLOP/s 16 bit dense, {} GiB", g.title, peak / 1e12,
                         base::format_gib(g.memory_bytes));
    }
    case SpecKind::kCluster: {
      const spec::Cluster c = spec::parse_cluster(shipped.json, where);
      return fmt::format("{}, {} × {} a node, {:.4g} GB/s inside, {:.4g} GB/s a node outside", c.title, c.gpus_per_node,
                         c.gpu.name, c.intra_bytes_per_second / 1e9, c.inter_bytes_per_second_per_node / 1e9);
    }
    case SpecKind::kEngine:
      return spec::parse_engine(shipped.json, where).title;
    case SpecKind::kCalibration:
      break;
  }
  const spec::Calibration k = spec::parse_calibration(shipped.json, where);
  return fmt::format("{} on {}, {} runs, step time ± {}", k.engine, k.gpu, base::format_count(k.num_timed_runs),
                     base::format_percent(k.relative_error_bar, 0));
}

void list(bool json) {
  if (json) {
    nlohmann::ordered_json out = {{"schema_version", 1}, {"specs", nlohmann::ordered_json::array()}};
    for (const ShippedSpec& shipped : spec::shipped_specs()) {
      out["specs"].push_back({{"kind", kind_name(shipped.kind)}, {"name", shipped.name}});
    }
    return print(out.dump(2) + "\n");
  }
  base::TextTable table({{.title = "kind"}, {.title = "name"}, {.title = "what it is", .can_shorten = true}});
  for (const ShippedSpec& shipped : spec::shipped_specs()) {
    table.add_row({std::string(kind_name(shipped.kind)), std::string(shipped.name), summary(shipped)});
  }
  print(table.render(text_style()));
}

// The file as it is, so that it can be a template. A cluster and its GPU share a name: then the kind must be said.
void show(const std::string& name, const std::string& kind) {
  std::vector<std::string> names, kinds;
  std::string_view json;
  for (const ShippedSpec& shipped : spec::shipped_specs()) {
    names.emplace_back(shipped.name);
    if (shipped.name != name || (!kind.empty() && kind_name(shipped.kind) != kind)) continue;
    kinds.emplace_back(kind_name(shipped.kind));
    json = shipped.json;
  }
  if (kinds.empty()) {
    throw base::InputError(base::unknown_name_message(kind.empty() ? "spec" : kind, name, names) +
                           "; `layline specs list` shows all");
  }
  if (kinds.size() > 1) {
    throw base::InputError(fmt::format("\"{}\" is a {} and a {}: say which with --kind", name, kinds[0], kinds[1]));
  }
  print(json);
}

// A file's kind follows from the keys that only that kind has.
SpecKind kind_of(const std::string& text, const std::string& file) {
  const auto has = [&](const char* key) { return text.find(fmt::format("\"{}\"", key)) != std::string::npos; };
  if (has("gpus_per_node")) return SpecKind::kCluster;
  if (has("num_sms")) return SpecKind::kGpu;
  if (has("values") && has("engine")) return SpecKind::kCalibration;
  if (has("num_layers") || has("architectures") || has("model_type")) return SpecKind::kModel;
  if (has("name") && has("title")) return SpecKind::kEngine;
  throw base::InputError(file,
                         "is no model, GPU, cluster, engine or calibration: none of gpus_per_node, num_sms, values, "
                         "num_layers, architectures is there");
}

void check(const std::string& file) {
  const std::string text = base::read_file(file, 8 << 20);
  const SpecKind kind = kind_of(text, file);
  std::string name;
  switch (kind) {
    case SpecKind::kModel: {
      const spec::Model model = spec::parse_model(text, file);
      name = fmt::format("{}, {} parameters", model.name, base::format_count(model.num_parameters()));
      break;
    }
    case SpecKind::kGpu:
      name = spec::parse_gpu(text, file).name;
      break;
    case SpecKind::kCluster:
      name = spec::parse_cluster(text, file).name;
      break;
    case SpecKind::kEngine:
      name = spec::parse_engine(text, file).name;
      break;
    case SpecKind::kCalibration:
      name = spec::parse_calibration(text, file).name;
  }
  print(fmt::format("{}: a good {} spec: {}\n", file, kind_name(kind), name));
}

}  // namespace

void add_specs(CLI::App& app) {
  CLI::App* command = app.add_subcommand("specs", "List, show and check models, GPUs, clusters, engines, calibrations");
  command->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  CLI::App* list_command = command->add_subcommand("list", "All shipped specs");
  list_command->add_flag("--json", *json, "print JSON");
  list_command->callback([json] { list(*json); });
  auto name = std::make_shared<std::string>();
  CLI::App* show_command = command->add_subcommand("show", "The file of one shipped spec, a template for your own");
  show_command->add_option("name", *name, "such as a100-80gb")->required();
  auto kind = std::make_shared<std::string>();
  show_command->add_option("--kind", *kind, "model, gpu, cluster, engine or calibration, where several share the name")
      ->check(CLI::IsMember({"model", "gpu", "cluster", "engine", "calibration"}));
  show_command->callback([name, kind] { show(*name, *kind); });
  auto file = std::make_shared<std::string>();
  CLI::App* check_command = command->add_subcommand("check", "Whether a spec file is good");
  check_command->add_option("file", *file, "JSON file")->required();
  check_command->callback([file] { check(*file); });
  command->footer(
      "To describe your own card: layline specs show a100-80gb --kind cluster > mine.json, edit, layline specs check "
      "mine.json");
}

}  // namespace layline::app
