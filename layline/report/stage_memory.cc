#include "layline/memory/stage_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/units.h"
#include "layline/report/best_pictures.h"
#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr const char* kStages = "stages";
constexpr size_t kMaxJobs = 12;
constexpr size_t kMaxStages = 16;  // of a pipeline; of longer ones, the first and the last of these

std::string title_of(size_t term) {
  std::string text(memory::kTermNames[term]);
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

std::vector<size_t> shown_stages(size_t num_stages) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < num_stages; ++i) {
    if (num_stages <= kMaxStages || i < kMaxStages / 2 || i >= num_stages - kMaxStages / 2) shown.push_back(i);
  }
  return shown;
}

Dataset dataset_of(const std::vector<Picture>& pictures) {
  Dataset dataset{
      .fields = {"picture", "job", "model", "gpus", "kernel", "stage", "term", "order", "gib", "capacity_gib"}};
  for (const Picture& picture : pictures) {
    const ReportRun& run = *picture.run;
    const double capacity = picture.job->cluster.gpu.memory_bytes / base::kGib;
    for (const size_t stage : shown_stages(picture.stages.size())) {
      const memory::StageMemory& bytes = picture.stages[stage].memory;
      for (size_t term = 0; term < memory::kNumTerms; ++term) {
        if (bytes.bytes[term] <= 0) continue;
        dataset.rows.push_back({picture.title, run.job_name, run.model, run.num_gpus, run.kernel, stage, title_of(term),
                                term, number_or_null(bytes.bytes[term] / base::kGib), number_or_null(capacity)});
      }
    }
  }
  return dataset;
}

std::vector<size_t> terms_in(const std::vector<Picture>& pictures) {
  std::vector<size_t> terms;
  for (size_t term = 0; term < memory::kNumTerms; ++term) {
    for (const Picture& picture : pictures) {
      const bool is_used = std::any_of(picture.stages.begin(), picture.stages.end(),
                                       [&](const auto& stage) { return stage.memory.bytes[term] > 0; });
      if (!is_used) continue;
      terms.push_back(term);
      break;
    }
  }
  return terms;
}

Table table_of(const std::vector<Picture>& pictures, const std::vector<size_t>& terms) {
  Table table;
  table.title = "Predicted peak memory of each pipeline stage, GiB";
  table.columns = {text_column("job"), text_column("layout"), number_column("stage"), number_column("all")};
  for (const size_t term : terms) table.columns.push_back(number_column(title_of(term)));
  table.columns.push_back(text_column("model", "model"));
  table.columns.push_back(number_column("GPUs", "gpus"));
  for (const Picture& picture : pictures) {
    for (const size_t stage : shown_stages(picture.stages.size())) {
      const memory::StageMemory& bytes = picture.stages[stage].memory;
      std::vector<std::string> row = {picture.run->job_name, short_layout(*picture.run), fmt::format("{}", stage),
                                      gib_cell(bytes.total())};
      for (const size_t term : terms) row.push_back(gib_cell(bytes.bytes[term]));
      row.push_back(picture.run->model);
      row.push_back(fmt::format("{}", picture.run->num_gpus));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

json spec_of(const std::vector<Picture>& pictures, const std::vector<size_t>& terms) {
  json spec = chart_spec(kStages);
  std::vector<std::string> names, titles;
  for (const size_t term : terms) names.push_back(title_of(term));
  for (const Picture& picture : pictures) titles.push_back(picture.title);
  json y = category("stage", "stage");
  y["type"] = "ordinal";
  y["sort"] = "ascending";
  spec["encoding"] = {{"y", y}};
  json color = category("term", "");
  color["scale"] = {{"domain", names}};
  color["sort"] = nullptr;
  const json bars = {{"mark", "bar"},
                     {"encoding",
                      {{"x", quantity("gib", "GiB")},
                       {"color", color},
                       {"order", {{"field", "order"}, {"type", "quantitative"}}},
                       {"tooltip", tooltip({{"stage", "stage"}, {"term", "what"}, {"gib", "GiB"}})}}}};
  const json capacity = {
      {"mark", {{"type", "rule"}, {"style", "prediction"}, {"strokeDash", {4, 3}}}},
      {"encoding",
       {{"x", {{"aggregate", "max"}, {"field", "capacity_gib"}, {"type", "quantitative"}}}, {"y", nullptr}}}};
  spec["layer"] = {bars, capacity};
  spec["height"] = {{"step", 20}};
  json faceted = facet(spec, "picture", titles, 300, 50);
  faceted["resolve"] = {{"scale", {{"y", "independent"}}}};
  faceted["usermeta"]["axis_width_of_each"] = true;
  return faceted;
}

}  // namespace

Section stage_memory(const RunList& runs, const std::string& calibration, Datasets& datasets) {
  Section section{.id = "memory", .title = "Memory by kind and stage"};
  const std::vector<Picture> pictures =
      best_pictures(runs, calibration, kMaxJobs, [](const ReportRun&) { return true; });
  if (pictures.empty()) {
    section.text.push_back("None of these runs can be predicted, so there is nothing to say about their memory.");
    return section;
  }
  const std::vector<size_t> terms = terms_in(pictures);
  datasets[kStages] = dataset_of(pictures);
  section.charts.push_back({.id = "memory",
                            .title = "Predicted memory of the fastest layouts, stage by stage",
                            .description =
                                "What the fullest rank of every pipeline stage holds at its peak. The dashed "
                                "line is the memory of the GPU.",
                            .spec = spec_of(pictures, terms),
                            .table = table_of(pictures, terms)});
  return section;
}

}  // namespace layline::report
