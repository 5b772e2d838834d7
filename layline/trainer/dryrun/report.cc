#include "layline/trainer/dryrun/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "layline/base/units.h"
#include "layline/search/explain.h"
#include "layline/trainer/config/check_run.h"
#include "layline/trainer/data/safetensors.h"
#include "layline/trainer/loop/load_weights.h"
#include "layline/trainer/loop/prepare.h"

namespace layline::trainer::dryrun {

namespace {

using nlohmann::ordered_json;

void check_data_and_weights(const config::RunConfig& config) {
  loop::open_training_data(config);
  if (!config.data.valid.empty()) loop::open_validation_data(config);
  if (!config.load.empty()) loop::check_fits(data::SafetensorsFolder(config.load), config.model);
}

double predicted_bytes(const memory::StageMemory& memory, size_t name) { return memory.bytes[name]; }

std::string difference(double predicted, double found) {
  return found == 0 ? "" : fmt::format("{:+.1f}", 100 * (predicted / found - 1));
}

std::string gib(double bytes) { return base::format_gib(bytes, 3); }

std::string stages_table(const Report& report, const base::TextStyle& style) {
  using base::Align;
  base::TextTable table({{.title = "stage"},
                         {.title = "layers", .align = Align::kRight},
                         {.title = "peak GiB", .align = Align::kRight},
                         {.title = "planner", .align = Align::kRight},
                         {.title = "%", .align = Align::kRight},
                         {.title = "peak in", .can_shorten = true},
                         {.title = "run as", .drop_priority = 1}});
  for (size_t i = 0; i < report.run.stages.size(); ++i) {
    const StageBytes& stage = report.run.stages[i];
    const double predicted = report.predicted[i].total(), found = static_cast<double>(stage.peak_bytes);
    const std::string run_as =
        stage.run_as == stage.stage ? fmt::format("rank {}", stage.rank) : fmt::format("stage {}", stage.run_as);
    table.add_row({fmt::format("{}", stage.stage), fmt::format("{}", stage.num_layers), gib(found), gib(predicted),
                   difference(predicted, found), describe(stage.peak_moment, report.resolved.layout.vp), run_as});
  }
  return table.render(style);
}

std::string names_table(const StageBytes& stage, const memory::StageMemory& predicted, const base::TextStyle& style) {
  using base::Align;
  base::TextTable table({{.title = fmt::format("stage {} by name", stage.stage)},
                         {.title = "peak GiB", .align = Align::kRight},
                         {.title = "planner", .align = Align::kRight},
                         {.title = "%", .align = Align::kRight}});
  for (size_t name = 0; name < kNumNames; ++name) {
    const double found = static_cast<double>(stage.bytes[name]), wanted = predicted_bytes(predicted, name);
    if (found == 0 && wanted == 0) continue;
    std::string text(name_of(name));
    std::ranges::replace(text, '_', ' ');
    table.add_row({text, gib(found), gib(wanted), difference(wanted, found)});
  }
  return table.render(style);
}

ordered_json stage_json(const StageBytes& stage, const memory::StageMemory& predicted, int64_t num_chunks) {
  ordered_json json = {{"stage", stage.stage},
                       {"run_as", stage.run_as},
                       {"rank", stage.rank},
                       {"layers", stage.num_layers},
                       {"peak_memory_bytes", stage.peak_bytes},
                       {"peak_moment", describe(stage.peak_moment, num_chunks)}};
  ordered_json& by_name = json["memory_bytes"] = ordered_json::object();
  ordered_json& predicted_by_name = json["predicted_bytes"] = ordered_json::object();
  for (size_t name = 0; name < kNumNames; ++name) {
    if (stage.bytes[name] != 0) by_name[std::string(name_of(name))] = stage.bytes[name];
    const double wanted = predicted_bytes(predicted, name);
    if (wanted != 0) predicted_by_name[std::string(name_of(name))] = wanted;
  }
  json["predicted_memory_bytes"] = predicted.total();
  ordered_json& by_moment = json["peak_memory_bytes_by_moment"] = ordered_json::object();
  for (size_t phase = 0; phase < tally::kNumPhases; ++phase) {
    const int64_t bytes = stage.peak_bytes_by_phase[phase];
    if (bytes != 0) by_moment[std::string(tally::kPhaseNames[phase])] = bytes;
  }
  return json;
}

}  // namespace

Report check_and_run(const config::RunConfig& config, int64_t world_size) {
  config::check_run(config);
  Report report;
  report.resolved = config::resolve_layout(config, world_size);
  check_data_and_weights(config);
  const auto start = std::chrono::steady_clock::now();
  report.run = dry_run(loop::training_job(config, report.resolved));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const search::Explanation explanation = search::explain(report.resolved.job, report.resolved.layout);
  for (const cost::StagePrice& stage : explanation.stages) report.predicted.push_back(stage.memory);
  return report;
}

bool fits(const Report& report, const config::RunConfig& config) {
  return !config.memory_limit_bytes || report.run.peak_bytes() <= *config.memory_limit_bytes;
}

std::string to_text(const Report& report, const config::RunConfig& config, const base::TextStyle& style) {
  const DryRun& run = report.run;
  const StageBytes& fullest = std::ranges::max(run.stages, {}, [](const StageBytes& s) { return s.peak_bytes; });
  const auto num_run = std::ranges::count_if(run.stages, [](const StageBytes& s) { return s.run_as == s.stage; });
  std::string text = fmt::format(
      "{}: good: {} on {} ranks, layout {} ({})\n"
      "The first rank of {} of {} stages ran {} of {} micro-batches without contents in {}:\n",
      config.where, config.model.title, base::format_count(report.resolved.layout.world_size()), report.resolved.text,
      report.resolved.how, num_run, run.stages.size(), run.num_micro_batches_run, run.num_micro_batches,
      base::format_seconds(report.seconds));
  text += stages_table(report, style);
  text += names_table(fullest, report.predicted[static_cast<size_t>(fullest.stage)], style);
  if (!fits(report, config)) {
    text += fmt::format("out of memory: stage {} needs {}, memory_limit_bytes is {}\n", fullest.stage,
                        base::format_bytes(static_cast<double>(fullest.peak_bytes)),
                        base::format_bytes(static_cast<double>(*config.memory_limit_bytes)));
  }
  return text;
}

std::string to_json(const Report& report) {
  const DryRun& run = report.run;
  ordered_json json = {{"schema_version", 1},
                       {"layout", report.resolved.text},
                       {"num_ranks", report.resolved.layout.world_size()},
                       {"num_micro_batches", run.num_micro_batches},
                       {"num_micro_batches_run", run.num_micro_batches_run},
                       {"dry_run_seconds", report.seconds},
                       {"peak_memory_bytes", run.peak_bytes()}};
  ordered_json by_stage = ordered_json::array(), stages = ordered_json::array();
  for (size_t i = 0; i < run.stages.size(); ++i) {
    by_stage.push_back(run.stages[i].peak_bytes);
    stages.push_back(stage_json(run.stages[i], report.predicted[i], report.resolved.layout.vp));
  }
  json["peak_memory_bytes_by_stage"] = std::move(by_stage);
  json["stages"] = std::move(stages);
  return json.dump(2) + "\n";
}

}  // namespace layline::trainer::dryrun
