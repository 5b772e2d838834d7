#include "layline/report/systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "layline/base/units.h"
#include "layline/report/cells.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr const char* kSystems = "systems";
constexpr double kLeastParameters = 1e9;

// By what the source is called.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kNames = {{
    {"2311.05610", "the paper (Aleph Alpha scaling)"},
    {"llm-foundry", "MPT (llm-foundry)"},
    {"NeMo", "NeMo"},
    {"nanotron", "nanotron"},
    {"Ultra-Scale", "nanotron"},
    {"vTrain", "Megatron-LM 2021 (vTrain)"},
    {"BigScience", "BLOOM (Megatron-DeepSpeed)"},
    {"BLOOM", "BLOOM (Megatron-DeepSpeed)"},
    {"SC21", "Megatron-LM 2021"},
    {"Korthikanti", "Megatron-LM 2022"},
    {"Megatron-LM", "Megatron-LM"},
}};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct Best {
  std::string system;
  const ReportRun* run = nullptr;
  double parameters() const { return static_cast<double>(run->job->model.num_parameters()); }
};

std::vector<Best> best_of_systems(const RunList& runs) {
  const auto key = [](const ReportRun& run) {
    return std::make_tuple(system_of(run), run.model, run.job->sequence_length, run.job->cluster.gpu.family);
  };
  std::vector<Best> best;
  for (const auto& [name, members] : by(comparable(runs), key)) {
    const ReportRun* highest = *std::max_element(
        members.begin(), members.end(), [](const ReportRun* a, const ReportRun* b) { return *a->mfu < *b->mfu; });
    best.push_back({std::get<0>(name), highest});
  }
  std::stable_sort(best.begin(), best.end(), [](const Best& a, const Best& b) { return *a.run->mfu > *b.run->mfu; });
  return best;
}

Table table_of(const std::vector<Best>& best) {
  Table table;
  table.title = "The best published run of each model";
  table.columns = {text_column("system"),
                   text_column("model"),
                   number_column("parameters"),
                   text_column("GPU"),
                   number_column("GPUs"),
                   number_column("tokens"),
                   number_column("batch"),
                   text_column("layout"),
                   text_column("precision"),
                   number_column("MFU, %"),
                   number_column("predicted MFU, %"),
                   number_column("published MFU, %")};
  table.note =
      "predicted: with the shipped calibrations, the paper's runs with a fit to its other sweeps. published: as the "
      "source "
      "counts it, where it gives one.";
  for (const Best& entry : best) {
    const ReportRun& run = *entry.run;
    table.rows.push_back({entry.system, run.model, base::format_short_count(entry.parameters()),
                          run.job->cluster.gpu.title, count_cell(run.num_gpus), count_cell(run.job->sequence_length),
                          count_cell(run.job->global_batch), run.layout_text,
                          std::string(spec::name_of(run.job->precision)), percent_cell(run.mfu),
                          percent_cell(run.predicted_mfu), percent_cell(run.record->mfu)});
  }
  return table;
}

Dataset dataset_of(const std::vector<Best>& best) {
  Dataset dataset{.fields = {"system", "of", "parameters", "gpu", "count", "tokens", "layout", "precision", "mfu",
                             "predicted_mfu"}};
  for (const Best& entry : best) {
    const ReportRun& run = *entry.run;
    dataset.rows.push_back({entry.system, run.model, number_or_null(entry.parameters() / 1e9),
                            run.job->cluster.gpu.title, run.num_gpus, run.job->sequence_length, run.layout_text,
                            std::string(spec::name_of(run.job->precision)), number_or_null(run.mfu),
                            number_or_null(run.predicted_mfu)});
  }
  return dataset;
}

json spec_of() {
  json spec = chart_spec(kSystems);
  json x = quantity("parameters", "parameters, billions");
  x["scale"] = {{"type", "log"}, {"nice", false}, {"padding", 12}};
  x["axis"] = {{"format", "~g"}, {"values", {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}}};
  json color = category("system", "");
  color["sort"] = "ascending";
  json y = percent("mfu", "MFU");
  y["scale"] = {{"zero", true}};
  spec["mark"] = {{"type", "point"}, {"filled", true}, {"size", 70}, {"opacity", 0.85}};
  spec["encoding"] = {{"x", x},
                      {"y", y},
                      {"color", color},
                      {"shape", color},
                      {"tooltip", tooltip({{"system", "system"},
                                           {"of", "model"},
                                           {"gpu", "GPU"},
                                           {"count", "GPUs"},
                                           {"tokens", "tokens"},
                                           {"layout", "layout"},
                                           {"precision", "precision"},
                                           {"mfu", "MFU"},
                                           {"predicted_mfu", "predicted MFU"}})}};
  spec["height"] = 380;
  return spec;
}

// Runs that state an MFU or FLOP/s but nothing that this formula could be applied to.
int64_t num_only_published(const RunList& runs) {
  return std::count_if(runs.begin(), runs.end(), [](const ReportRun* run) {
    return run->is_ok && !run->mfu && (run->record->mfu || run->record->tflops_per_gpu);
  });
}

}  // namespace

std::string system_of(const ReportRun& run) {
  for (const auto& [part, name] : kNames) {
    if (contains(run.record->source, part)) return std::string(name);
  }
  return run.record->engine.empty() ? "not stated" : run.record->engine;
}

RunList comparable(const RunList& runs) {
  return those(runs, [](const ReportRun& run) {
    if (!run.mfu || static_cast<double>(run.job->model.num_parameters()) < kLeastParameters) return false;
    if (contains(run.record->source, "functional-test")) return false;
    return run.record->scored.value_or(true) || run.seconds_are_derived;
  });
}

Section systems(const RunList& runs, Datasets& datasets) {
  Section section{.id = "systems", .title = "Beside other systems"};
  const std::vector<Best> best = best_of_systems(runs);
  if (best.empty()) {
    section.text.push_back("No run of at least a billion parameters has a step time.");
    return section;
  }
  const ReportRun& first = *best.front().run;
  section.text.push_back(
      fmt::format("The highest MFU of all published runs under this one formula is {} % ({}, {}, {} tokens, "
                  "{} GPUs).",
                  percent_cell(first.mfu), best.front().system, first.model, count_cell(first.job->sequence_length),
                  count_cell(first.num_gpus)));
  section.text.push_back(
      "Step times are those published or follow from published tokens a second. For Megatron-LM 2021 they follow from "
      "its "
      "TFLOP/s and the formula that its paper counts them by, which includes recomputation; MFU here does not. MFU is "
      "against the peak of the precision that was run: the runs in fp8 are measured by a peak twice as high.");
  if (const int64_t count = num_only_published(runs); count > 0) {
    section.text.push_back(
        fmt::format("{} published rows give FLOP/s or an MFU but no step time, batch or formula; they "
                    "cannot be brought under this one and are not shown.",
                    count_cell(count)));
  }
  datasets[kSystems] = dataset_of(best);
  section.charts.push_back({.id = "systems",
                            .title = "Best published MFU of each system and model",
                            .description =
                                "A point for the best run of a model at a sequence length on one kind of GPU. "
                                "The filters do not act on it.",
                            .spec = spec_of(),
                            .table = table_of(best)});
  return section;
}

}  // namespace layline::report
