// Fits the coefficients of the cost and memory model to runs: robust least squares on log(predicted / real) with bounds
// and priors (Ceres), and the verdicts and bytes of memory by maximum likelihood: docs/model.md, F1 to F3.
//
// Every coefficient has a prior around its default (coefficients.inc); what the runs say nothing about stays there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/calibration.h"
#include "layline/spec/job.h"

namespace layline::calibrate {

enum class MemoryKind { kAllocated, kReserved, kTotal };  // kTotal: nvidia-smi, with the context
enum class MemoryRank { kFirst, kLast, kMax };

// A run to learn from. Times and bytes are 0 where the run has none.
struct Observation {
  std::shared_ptr<const spec::Job> job;  // shared by the runs of one job, so that they are priced together
  layout::Layout layout;
  std::string group;  // the sweep or model it belongs to, for leaving out
  double seconds = 0;
  double memory_bytes = 0;
  MemoryKind memory_kind = MemoryKind::kAllocated;
  MemoryRank memory_rank = MemoryRank::kMax;
  bool judged = false;  // ok or oom: its verdict counts
  bool ran_out_of_memory = false;
};

struct FitOptions {
  double time_sigma = 0.03;    // scale of honest noise, as a log ratio; beyond it errors count linearly
  double memory_sigma = 0.03;  // the same for measured bytes
  int max_iterations = 40;
};

struct Fit {
  spec::Coefficients coefficients;
  double memory_relative_sigma = 0.08;
};

// Starts from `base` and returns the maximum a posteriori coefficients. Deterministic.
Fit fit(const std::vector<Observation>& runs, const Fit& base, const FitOptions& options);

// |real / predicted - 1| that `share` of the timed runs stay within.
double error_quantile(const std::vector<Observation>& runs, const Fit& fit, double share);

// The values that differ from the defaults, as a calibration file holds them.
std::map<std::string, double> changed_values(const spec::Coefficients& coefficients);

}  // namespace layline::calibrate
