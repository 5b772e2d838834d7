// What the planner says of one run record.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "layline/calibrate/fit.h"
#include "layline/calibrate/score.h"
#include "layline/cost/step.h"
#include "layline/runs/run_record.h"

namespace layline::calibrate {

// Bytes of the asked rank in the asked sense, from the stages of a priced layout.
double memory_of(const std::vector<cost::StagePrice>& stages, MemoryRank rank, MemoryKind kind);

MemoryRank memory_rank_of(const runs::RunRecord& record);  // max where the record does not say
MemoryKind memory_kind_of(const runs::RunRecord& record);  // allocated where the record does not say

struct Prediction {
  double step_seconds = 0;
  std::array<double, cost::kNumKinds> seconds{};  // by cost::Kind; add up to step_seconds
  double relative_error_bar = 0;
  double first_stage_bytes = 0, last_stage_bytes = 0, max_bytes = 0;  // as the record's memory_kind says
  Verdict verdict = Verdict::kIllegal;
  double fit_probability = 0;
  double margin_bytes = 0;  // capacity - peak, everything included
  std::string reason;       // why illegal or not predicted
};

// Prices a legal layout with a calibration's error bar.
Prediction predict(cost::Pricer& pricer, const layout::Layout& layout, MemoryKind kind, double relative_error_bar);

// The fields of runs::prediction_columns().
std::vector<std::string> prediction_fields(const Prediction& prediction);

std::string_view name_of(Verdict verdict);  // "fits", "oom", "illegal"

}  // namespace layline::calibrate
