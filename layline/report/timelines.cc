#include <fmt/format.h>

#include <algorithm>

#include "layline/base/units.h"
#include "layline/layout/legality.h"
#include "layline/report/best_pictures.h"
#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/vega_spec.h"
#include "layline/schedule/simulate.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr const char* kTimeline = "timeline";
constexpr size_t kMaxJobs = 4;
constexpr int64_t kMaxRanks = 16;
constexpr int64_t kMicroBatchesARank = 2;  // drawn: as many times the stages, more look the same

struct Drawn {
  const Picture* picture = nullptr;
  schedule::Timeline timeline;
  int64_t micro_batches = 0, all_micro_batches = 0;
};

Drawn draw(const Picture& picture) {
  const layout::Layout& layout = picture.run->layout;
  Drawn drawn{.picture = &picture, .timeline = {}};
  drawn.all_micro_batches = layout::num_micro_batches(layout, *picture.job);
  drawn.micro_batches = std::min(drawn.all_micro_batches, kMicroBatchesARank * layout.pp);
  const double chunks = static_cast<double>(layout.vp);
  schedule::StageTimes times;
  for (int64_t stage = 0; stage < layout.num_virtual_stages(); ++stage) {
    const cost::StagePrice& rank = picture.stages[static_cast<size_t>(stage % layout.pp)];
    const double backward = rank.backward_seconds / chunks;
    times.push_back({rank.forward_seconds / chunks, backward, backward / 2});
  }
  drawn.timeline = schedule::simulate(schedule::make_schedule(layout, drawn.micro_batches), times);
  return drawn;
}

std::string name_of(schedule::Op op) {
  switch (op) {
    case schedule::Op::kForward:
      return "forward";
    case schedule::Op::kBackwardWeight:
      return "weight gradient";
    case schedule::Op::kBackwardInput:
      return "input gradient";
    default:
      return "backward";
  }
}

Dataset dataset_of(const std::vector<Drawn>& all) {
  Dataset dataset{.fields = {"picture", "job", "model", "gpus", "kernel", "rank", "op", "micro_batch", "start", "end"}};
  for (const Drawn& drawn : all) {
    const ReportRun& run = *drawn.picture->run;
    for (size_t rank = 0; rank < drawn.timeline.ranks.size(); ++rank) {
      for (const schedule::TimedInstruction& step : drawn.timeline.ranks[rank].steps) {
        if (schedule::is_message(step.instruction.op)) continue;
        dataset.rows.push_back({drawn.picture->title, run.job_name, run.model, run.num_gpus, run.kernel, rank,
                                name_of(step.instruction.op), step.instruction.micro_batch,
                                number_or_null(step.start_seconds), number_or_null(step.end_seconds)});
      }
    }
  }
  return dataset;
}

Table table_of(const std::vector<Drawn>& all) {
  Table table;
  table.title = "Pipelines on a clock";
  table.columns = {text_column("job"),
                   text_column("layout"),
                   number_column("stages"),
                   number_column("micro-batches a step"),
                   number_column("drawn"),
                   number_column("seconds drawn"),
                   number_column("idle of those, %"),
                   number_column("first stage idle, %"),
                   number_column("last stage idle, %"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (const Drawn& drawn : all) {
    const schedule::Timeline& line = drawn.timeline;
    const auto idle = [&](const schedule::RankTimeline& rank) {
      return percent_cell(rank.idle_seconds / line.makespan_seconds);
    };
    table.rows.push_back({drawn.picture->run->job_name, short_layout(*drawn.picture->run), fmt::format("{}", line.pp),
                          count_cell(drawn.all_micro_batches), count_cell(drawn.micro_batches),
                          seconds_cell(line.makespan_seconds), percent_cell(line.bubble_fraction()),
                          idle(line.ranks.front()), idle(line.ranks.back()), drawn.picture->run->model,
                          fmt::format("{}", drawn.picture->run->num_gpus)});
  }
  return table;
}

json spec_of(const std::vector<Drawn>& all) {
  json spec = chart_spec(kTimeline);
  std::vector<std::string> titles;
  for (const Drawn& drawn : all) titles.push_back(drawn.picture->title);
  json y = category("rank", "pipeline rank");
  y["type"] = "ordinal";
  y["sort"] = "ascending";
  json color = category("op", "");
  color["scale"] = {{"domain", {"forward", "backward"}}};
  spec["mark"] = {{"type", "bar"}, {"style", "cell_with_edge"}};
  spec["encoding"] = {{"y", y},
                      {"x", quantity("start", "seconds")},
                      {"x2", {{"field", "end"}}},
                      {"color", color},
                      {"tooltip", tooltip({{"rank", "rank"},
                                           {"op", "what"},
                                           {"micro_batch", "micro-batch"},
                                           {"start", "from, s"},
                                           {"end", "to, s"}})}};
  spec["height"] = {{"step", 18}};
  json faceted = facet(spec, "picture", titles, 700, 50);
  faceted["resolve"] = {{"scale", {{"x", "independent"}, {"y", "independent"}}}};
  faceted["columns"] = 1;
  faceted["usermeta"]["max_columns"] = 1;
  return faceted;
}

}  // namespace

Section pipeline_timelines(const RunList& runs, const std::string& calibration, Datasets& datasets) {
  Section section{.id = "pipeline", .title = "Pipeline timelines"};
  const std::vector<Picture> pictures = best_pictures(runs, calibration, kMaxJobs, [](const ReportRun& run) {
    return run.layout.pp > 1 && run.layout.pp <= kMaxRanks && run.layout.schedule != layout::ScheduleKind::kZeroBubble;
  });
  if (pictures.empty()) {
    section.text.push_back(fmt::format("None of these runs is a predicted pipeline of 2 to {} stages.", kMaxRanks));
    return section;
  }
  std::vector<Drawn> all;
  for (const Picture& picture : pictures) all.push_back(draw(picture));
  datasets[kTimeline] = dataset_of(all);
  section.charts.push_back({.id = "pipeline",
                            .title = "Pipelines of the fastest pipelined layouts",
                            .description =
                                "What every pipeline rank does when, by the predicted times of its stage: the "
                                "first micro-batches of a step. Gaps are the bubble.",
                            .spec = spec_of(all),
                            .table = table_of(all)});
  return section;
}

}  // namespace layline::report
