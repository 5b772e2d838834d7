#include "layline/sweep/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"

namespace layline::sweep {
namespace {

using cost::Kind;
using memory::Term;
using trainer::metrics::StepRecord;

// What the trainer tells apart, and the planner's kinds in it.
struct WorkName {
  std::string_view name;
  std::vector<Kind> kinds;
};

const std::vector<WorkName>& work_names() {
  static const std::vector<WorkName> names = {{"matrix_multiplication", {Kind::kGemm}},
                                              {"attention", {Kind::kAttention}},
                                              {"memory_bound", {Kind::kMemoryBound, Kind::kLaunch}},
                                              {"recomputation", {Kind::kRecompute}},
                                              {"tensor_parallel", {Kind::kTensorParallel, Kind::kContextParallel}},
                                              {"pipeline", {Kind::kPipelineSend, Kind::kBubble}},
                                              {"data_parallel", {Kind::kDataParallel}},
                                              {"optimizer", {Kind::kOptimizer}},
                                              {"other", {Kind::kMemoryPressure, Kind::kOther}}};
  return names;
}

struct OwnerName {
  std::string_view name;
  std::vector<Term> terms;
};

const std::vector<OwnerName>& owner_names() {
  static const std::vector<OwnerName> names = {
      {"weights", {Term::kWeights}},
      {"gradients", {Term::kGradients}},
      {"optimizer", {Term::kOptimizer}},
      {"activations", {Term::kActivations, Term::kTransient, Term::kPipeline, Term::kOptimizerStep}},
      {"logits", {Term::kLogits}},
      {"communication", {Term::kCommunication}},
      {"buffers", {Term::kBuffers}},
      {"reserve", {Term::kReserve, Term::kContext}}};
  return names;
}

bool is_wait(std::string_view work) {
  return work == "pipeline" || work == "data_parallel" || work == "tensor_parallel";
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

template <typename Number>
double number(const std::map<std::string, Number>& numbers, std::string_view name) {
  const auto found = numbers.find(std::string(name));
  return found == numbers.end() ? 0 : static_cast<double>(found->second);
}

// The first steps warm caches up.
std::vector<StepRecord> without_warm_up(const std::vector<StepRecord>& rows) {
  constexpr size_t kWarmUp = 2;
  return {rows.begin() + (rows.size() > kWarmUp ? kWarmUp : 0), rows.end()};
}

void check_is_of(const spec::Job& job, const layout::Layout& layout, const std::vector<StepRecord>& rows,
                 const std::string& where) {
  const std::string own = layout::to_text(layout);
  for (const StepRecord& row : rows) {
    const std::string place = fmt::format("{}: step {}", where, row.step);
    if (!row.layout.empty() && row.layout != own) {
      throw base::InputError(place, fmt::format("is of layout \"{}\", not of \"{}\"", row.layout, own));
    }
    if (row.num_parameters > 0 && row.num_parameters != job.model.num_parameters()) {
      throw base::InputError(
          place, fmt::format("is of a model of {} parameters, but {} has {}", base::format_count(row.num_parameters),
                             job.model.name, base::format_count(job.model.num_parameters())));
    }
  }
}

void check(const std::vector<StepRecord>& rows, size_t num_stages, const std::string& where) {
  if (rows.empty())
    throw base::InputError(where, "is not there, or has no step; want the file that a run wrote as its `metrics`");
  for (const StepRecord& row : rows) {
    const std::string place = fmt::format("{}: step {}", where, row.step);
    if (row.seconds_by_stage.empty() || row.memory_bytes_by_stage.empty()) {
      throw base::InputError(place, "lacks seconds_by_stage and memory_bytes_by_stage");
    }
    if (row.seconds_by_stage.size() == num_stages && row.memory_bytes_by_stage.size() == num_stages &&
        row.peak_memory_bytes_by_stage.size() == num_stages) {
      continue;
    }
    throw base::InputError(
        place, fmt::format("is of {} pipeline stages, but the layout has {}", row.seconds_by_stage.size(), num_stages));
  }
}

double median_of(const std::vector<StepRecord>& rows, size_t stage, std::string_view work) {
  std::vector<double> values;
  for (const StepRecord& row : rows) values.push_back(number(row.seconds_by_stage[stage], work));
  return median(std::move(values));
}

size_t slowest(const std::vector<StepRecord>& rows, size_t num_stages) {
  std::vector<double> own(num_stages, 0);
  for (size_t stage = 0; stage < num_stages; ++stage) {
    for (const WorkName& work : work_names()) {
      if (!is_wait(work.name)) own[stage] += median_of(rows, stage, work.name);
    }
  }
  return static_cast<size_t>(std::distance(own.begin(), std::ranges::max_element(own)));
}

StageBeside stage_beside(const memory::StageMemory& predicted, const StepRecord& row, size_t stage) {
  StageBeside beside;
  beside.peak_bytes = {"peak", predicted.total(), static_cast<double>(row.peak_memory_bytes_by_stage[stage])};
  for (const OwnerName& owner : owner_names()) {
    Pair pair{owner.name, 0, number(row.memory_bytes_by_stage[stage], owner.name)};
    for (const Term term : owner.terms) pair.predicted += predicted.bytes[static_cast<size_t>(term)];
    if (pair.predicted != 0 || pair.measured != 0) beside.bytes.push_back(pair);
  }
  return beside;
}

}  // namespace

SideBySide beside(const spec::Job& job, const search::Explanation& predicted, const std::vector<StepRecord>& all_rows,
                  const std::string& where) {
  check_is_of(job, predicted.priced.layout, all_rows, where);
  check(all_rows, predicted.stages.size(), where);
  const std::vector<StepRecord> rows = without_warm_up(all_rows);
  SideBySide result;
  result.num_steps = static_cast<int64_t>(rows.size());
  std::vector<double> steps;
  for (const StepRecord& row : rows) steps.push_back(row.step_seconds);
  result.step_seconds = {"step", predicted.priced.price.step_seconds, median(std::move(steps))};
  result.slowest_stage = slowest(rows, predicted.stages.size());
  for (const WorkName& work : work_names()) {
    Pair pair{work.name, 0, median_of(rows, result.slowest_stage, work.name)};
    for (const Kind kind : work.kinds) pair.predicted += predicted.priced.price[kind];
    if (pair.predicted != 0 || pair.measured != 0) result.seconds.push_back(pair);
  }
  for (size_t stage = 0; stage < predicted.stages.size(); ++stage) {
    result.stages.push_back(stage_beside(predicted.stages[stage].memory, rows.back(), stage));
  }
  return result;
}

}  // namespace layline::sweep
