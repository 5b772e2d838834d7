#include "layline/sweep/similarity.h"

#include <algorithm>
#include <cmath>

namespace layline::sweep {
namespace {

// Two doublings, or two kinds that differ, leave 1/e: neighbours say much of each other, opposite corners little.
constexpr double kLength = 2;

double log2_of(int64_t count) { return std::log2(static_cast<double>(std::max<int64_t>(1, count))); }

// How far the seconds of a part may be off, for a scale of errors. What computes is known best; communication depends
// on who else uses the network and on what hides it, and may be half as long again at a time when it is not known
// better; the pressure of memory that is nearly full follows from a margin that is itself uncertain, and may as well
// not be there.
double part_deviation(cost::Kind kind, double scale) {
  constexpr double kCommunication = 4, kMostCommunication = 0.5;
  constexpr double kPressure = 20, kMostPressure = 1;
  switch (kind) {
    case cost::Kind::kTensorParallel:
    case cost::Kind::kContextParallel:
    case cost::Kind::kPipelineSend:
    case cost::Kind::kBubble:
    case cost::Kind::kDataParallel:
    case cost::Kind::kOther:
      return std::max(scale, std::min(kCommunication * scale, kMostCommunication));
    case cost::Kind::kMemoryPressure:
      return std::max(scale, std::min(kPressure * scale, kMostPressure));
    default:
      return scale;
  }
}

constexpr double kAcrossSweeps = 0.5;  // of a part's variance: the same in all sweeps

}  // namespace

Setting setting_of(const spec::Job& job, const layout::Layout& layout,
                   const std::array<double, cost::kNumKinds>& seconds) {
  Setting setting;
  setting.logarithms = {log2_of(job.model.hidden), log2_of(job.sequence_length), log2_of(job.num_gpus),
                        log2_of(layout.tp),        log2_of(layout.pp),           log2_of(layout.cp),
                        log2_of(layout.vp),        log2_of(layout.mb),           log2_of(layout.hsdp)};
  setting.kinds = {layout.sp ? 1 : 0,
                   layout.zero,
                   static_cast<int>(layout.checkpointing),
                   static_cast<int>(layout.schedule),
                   static_cast<int>(layout.attention),
                   static_cast<int>(layout.norm)};
  double step = 0;
  for (const double part : seconds) step += part;
  for (size_t i = 0; step > 0 && i < seconds.size(); ++i) setting.shares[i] = seconds[i] / step;
  return setting;
}

double similarity(const Setting& a, const Setting& b) {
  double distance = 0;
  for (size_t i = 0; i < a.logarithms.size(); ++i) distance += std::abs(a.logarithms[i] - b.logarithms[i]);
  for (size_t i = 0; i < a.kinds.size(); ++i) distance += a.kinds[i] != b.kinds[i] ? 1 : 0;
  return std::exp(-distance / kLength);
}

double error_covariance(const Setting& a, const Setting& b, bool is_same_sweep, double scale) {
  double parts = 0;
  for (size_t i = 0; i < a.shares.size(); ++i) {
    const double deviation = part_deviation(static_cast<cost::Kind>(i), scale);
    parts += deviation * deviation * a.shares[i] * b.shares[i];
  }
  return parts * (is_same_sweep ? 1 : kAcrossSweeps) + scale * scale * similarity(a, b);
}

}  // namespace layline::sweep
