#include "layline/calibrate/predict.h"

#include <fmt/format.h>

#include <algorithm>

namespace layline::calibrate {
namespace {

double bytes_in_sense(const memory::StageMemory& memory, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kAllocated:
      return memory.allocated();
    case MemoryKind::kReserved:
      return memory.reserved();
    case MemoryKind::kTotal:
      break;
  }
  return memory.total();
}

}  // namespace

double memory_of(const std::vector<cost::StagePrice>& stages, MemoryRank rank, MemoryKind kind) {
  if (rank == MemoryRank::kFirst) return bytes_in_sense(stages.front().memory, kind);
  if (rank == MemoryRank::kLast) return bytes_in_sense(stages.back().memory, kind);
  double most = 0;
  for (const cost::StagePrice& stage : stages) most = std::max(most, bytes_in_sense(stage.memory, kind));
  return most;
}

MemoryRank memory_rank_of(const runs::RunRecord& record) {
  if (record.memory_rank == "first") return MemoryRank::kFirst;
  if (record.memory_rank == "last") return MemoryRank::kLast;
  return MemoryRank::kMax;
}

MemoryKind memory_kind_of(const runs::RunRecord& record) {
  if (record.memory_kind == "reserved") return MemoryKind::kReserved;
  if (record.memory_kind == "nvidia-smi") return MemoryKind::kTotal;
  return MemoryKind::kAllocated;
}

Prediction predict(cost::Pricer& pricer, const layout::Layout& layout, MemoryKind kind, double relative_error_bar) {
  const cost::StepPrice price = pricer.price(layout);
  const std::vector<cost::StagePrice> stages = pricer.stages(layout);
  Prediction prediction;
  prediction.step_seconds = price.step_seconds;
  prediction.seconds = price.seconds;
  prediction.relative_error_bar = relative_error_bar;
  prediction.first_stage_bytes = memory_of(stages, MemoryRank::kFirst, kind);
  prediction.last_stage_bytes = memory_of(stages, MemoryRank::kLast, kind);
  prediction.max_bytes = memory_of(stages, MemoryRank::kMax, kind);
  prediction.verdict = price.fits ? Verdict::kFits : Verdict::kOom;
  prediction.fit_probability = price.fit_probability;
  prediction.margin_bytes = price.capacity_bytes - price.peak_memory_bytes;
  return prediction;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kOom:
      return "oom";
    case Verdict::kIllegal:
      break;
  }
  return "illegal";
}

std::vector<std::string> prediction_fields(const Prediction& p) {
  std::vector<std::string> fields;
  for (const double value : {p.step_seconds, p.first_stage_bytes, p.last_stage_bytes, p.max_bytes}) {
    fields.push_back(fmt::format("{}", value));
  }
  fields.emplace_back(name_of(p.verdict));
  fields.push_back(fmt::format("{}", p.fit_probability));
  fields.push_back(fmt::format("{}", p.margin_bytes));
  fields.push_back(p.reason);
  return fields;
}

}  // namespace layline::calibrate
