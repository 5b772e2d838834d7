#include "layline/calibrate/fit.h"

#include <ceres/ceres.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "layline/calibrate/predict.h"
#include "layline/calibrate/score.h"
#include "layline/cost/step.h"

namespace layline::calibrate {
namespace {

constexpr double kMemorySigmaDefault = 0.06;

// The unknowns of one fit: some coefficients, and for memory fits the width of the verdict.
struct Unknowns {
  std::vector<const spec::CoefficientInfo*> infos;
  bool with_sigma = false;
  size_t size() const { return infos.size() + (with_sigma ? 1 : 0); }
};

Fit applied(const Unknowns& unknowns, const Fit& base, const double* values) {
  Fit result = base;
  for (size_t i = 0; i < unknowns.infos.size(); ++i) result.coefficients.*(unknowns.infos[i]->member) = values[i];
  if (unknowns.with_sigma) result.memory_relative_sigma = values[unknowns.infos.size()];
  return result;
}

// Cauchy's loss as a residual: its square is quadratic for small errors and grows as a logarithm for large ones, so
// that runs that do not fit with the rest hardly pull.
double robust(double x) { return std::copysign(std::sqrt(std::log1p(x * x)), x); }

// log Φ(x), accurate far into the tail.
double log_normal_cdf(double x) {
  if (x > -6) return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
  return -0.5 * x * x - std::log(-x * std::sqrt(2 * std::numbers::pi));
}

double prior_residual(const spec::CoefficientInfo& info, double value) {
  if (info.default_value == 0) return value / info.prior;
  return std::log(std::max(value, 1e-12) / info.default_value) / info.prior;
}

using ResidualFunction = std::function<void(const Fit&, std::vector<double>&)>;

class NumericCost : public ceres::CostFunction {
 public:
  NumericCost(Unknowns unknowns, Fit base, ResidualFunction function, int num_residuals)
      : unknowns_(std::move(unknowns)), base_(base), function_(std::move(function)) {
    set_num_residuals(num_residuals + static_cast<int>(unknowns_.size()));
    mutable_parameter_block_sizes()->push_back(static_cast<int>(unknowns_.size()));
  }

  bool Evaluate(double const* const* parameters, double* residuals, double** jacobians) const override {
    const std::vector<double> center = all_residuals(parameters[0]);
    std::copy(center.begin(), center.end(), residuals);
    if (jacobians == nullptr || jacobians[0] == nullptr) return true;
    const size_t n = unknowns_.size();
    tbb::parallel_for(size_t{0}, n, [&](size_t i) {
      std::vector<double> moved(parameters[0], parameters[0] + n);
      const double step = 1e-4 * std::max(std::abs(moved[i]), scale_of(i));
      const double direction = moved[i] + step > upper_of(i) ? -1 : 1;
      moved[i] += direction * step;
      const std::vector<double> next = all_residuals(moved.data());
      for (size_t r = 0; r < next.size(); ++r) jacobians[0][r * n + i] = direction * (next[r] - center[r]) / step;
    });
    return true;
  }

 private:
  double upper_of(size_t i) const { return i < unknowns_.infos.size() ? unknowns_.infos[i]->upper : 1.0; }
  double scale_of(size_t i) const {
    if (i >= unknowns_.infos.size()) return kMemorySigmaDefault;
    const auto& info = *unknowns_.infos[i];
    return info.default_value != 0 ? std::abs(info.default_value) : info.prior;
  }
  std::vector<double> all_residuals(const double* values) const {
    std::vector<double> residuals;
    function_(applied(unknowns_, base_, values), residuals);
    for (size_t i = 0; i < unknowns_.infos.size(); ++i) {
      residuals.push_back(prior_residual(*unknowns_.infos[i], values[i]));
    }
    if (unknowns_.with_sigma) residuals.push_back(std::log(values[unknowns_.infos.size()] / kMemorySigmaDefault) / 0.5);
    return residuals;
  }

  Unknowns unknowns_;
  Fit base_;
  ResidualFunction function_;
};

// Half the squared residuals, priors included.
double total_cost(const NumericCost& cost, const std::vector<double>& values) {
  std::vector<double> residuals(static_cast<size_t>(cost.num_residuals()));
  const double* const block[] = {values.data()};
  cost.Evaluate(block, residuals.data(), nullptr);
  double sum = 0;
  for (const double residual : residuals) sum += residual * residual;
  return sum / 2;
}

// A better start: each unknown in turn is tried at some multiples of itself. Terms that matter only beyond a threshold
// have no slope where they begin, and least squares alone would not find them.
void scan_start(const NumericCost& cost, const Unknowns& unknowns, std::vector<double>& values) {
  double best = total_cost(cost, values);
  for (size_t i = 0; i < unknowns.infos.size(); ++i) {
    const spec::CoefficientInfo& info = *unknowns.infos[i];
    const double start = values[i] != 0 ? values[i] : info.prior;
    double chosen = values[i];
    for (const double factor : {0.1, 0.3, 0.6, 1.6, 3.0, 10.0, 100.0, 1000.0}) {
      values[i] = std::clamp(start * factor, info.lower, info.upper);
      const double trial = total_cost(cost, values);
      if (trial < best) {
        best = trial;
        chosen = values[i];
      }
    }
    values[i] = chosen;
  }
}

Fit solve(const Unknowns& unknowns, const Fit& base, const ResidualFunction& function, int num_residuals,
          int max_iterations, bool scan = false) {
  std::vector<double> values;
  for (const auto* info : unknowns.infos) values.push_back(base.coefficients.*(info->member));
  if (unknowns.with_sigma) values.push_back(base.memory_relative_sigma);
  ceres::Problem problem;
  auto* cost = new NumericCost(unknowns, base, function, num_residuals);  // owned by the problem
  if (scan) scan_start(*cost, unknowns, values);
  problem.AddResidualBlock(cost, nullptr, values.data());
  for (size_t i = 0; i < unknowns.size(); ++i) {
    const bool is_sigma = i >= unknowns.infos.size();
    const double lower = is_sigma ? 0.005 : unknowns.infos[i]->lower;
    const double upper = is_sigma ? 0.5 : unknowns.infos[i]->upper;
    problem.SetParameterLowerBound(values.data(), static_cast<int>(i), lower);
    problem.SetParameterUpperBound(values.data(), static_cast<int>(i), upper);
    values[i] = std::clamp(values[i], lower, upper);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = max_iterations;
  options.function_tolerance = 1e-7;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return applied(unknowns, base, values.data());
}

Unknowns unknowns_of(spec::CoefficientClass wanted) {
  Unknowns unknowns;
  for (const spec::CoefficientInfo& info : spec::coefficient_table()) {
    if (info.kind == wanted) unknowns.infos.push_back(&info);
  }
  return unknowns;
}

// Runs that share a job are priced by one Pricer. In the order of first appearance: sums must not depend on addresses.
std::vector<std::pair<const spec::Job*, std::vector<const Observation*>>> by_job(const std::vector<Observation>& runs) {
  std::vector<std::pair<const spec::Job*, std::vector<const Observation*>>> jobs;
  std::map<const spec::Job*, size_t> positions;
  for (const Observation& run : runs) {
    const auto [at, is_new] = positions.emplace(run.job.get(), jobs.size());
    if (is_new) jobs.emplace_back(run.job.get(), std::vector<const Observation*>{});
    jobs[at->second].second.push_back(&run);
  }
  return jobs;
}

void time_residuals(const std::vector<Observation>& runs, const Fit& fit, double sigma,
                    std::vector<double>& residuals) {
  for (const auto& [job, members] : by_job(runs)) {
    cost::Pricer pricer(members.front()->job, fit.coefficients);
    for (const Observation* run : members) {
      const double predicted = pricer.price(run->layout).step_seconds;
      residuals.push_back(robust(std::log(predicted / run->seconds) / sigma));
    }
  }
}

void memory_residuals(const std::vector<Observation>& runs, const Fit& fit, double sigma,
                      std::vector<double>& residuals) {
  for (const auto& [job, members] : by_job(runs)) {
    cost::Pricer pricer(members.front()->job, fit.coefficients);
    for (const Observation* run : members) {
      if (run->memory_bytes > 0) {
        const double predicted = memory_of(pricer.stages(run->layout), run->memory_rank, run->memory_kind);
        residuals.push_back(robust(std::log(predicted / run->memory_bytes) / sigma));
      } else {
        const double peak = pricer.peak_memory_bytes(run->layout);
        const double margin = (job->cluster.gpu.memory_bytes - peak) / (fit.memory_relative_sigma * peak);
        residuals.push_back(std::sqrt(-2 * log_normal_cdf(run->ran_out_of_memory ? -margin : margin)));
      }
    }
  }
}

}  // namespace

Fit fit(const std::vector<Observation>& runs, const Fit& base, const FitOptions& options) {
  std::vector<Observation> timed, remembered;
  for (const Observation& run : runs) {
    if (run.seconds > 0) timed.push_back(run);
    if (run.memory_bytes > 0 || run.judged) remembered.push_back(run);
  }
  Fit result = base;
  if (!remembered.empty()) {
    Unknowns unknowns = unknowns_of(spec::CoefficientClass::kMemory);
    unknowns.with_sigma = true;
    result = solve(
        unknowns, result,
        [&](const Fit& f, std::vector<double>& r) { memory_residuals(remembered, f, options.memory_sigma, r); },
        static_cast<int>(remembered.size()), options.max_iterations);
  }
  if (!timed.empty()) {
    const bool is_measured = timed.front().job->cluster.is_measured_with(timed.front().job->engine.name);
    const spec::CoefficientClass wanted =
        is_measured ? spec::CoefficientClass::kMeasured : spec::CoefficientClass::kTime;
    // From a wide scale to the real one, so that a far start does not take every run for an outlier.
    for (const double scale : {16.0, 4.0, 1.0}) {
      result = solve(
          unknowns_of(wanted), result,
          [&](const Fit& f, std::vector<double>& r) { time_residuals(timed, f, scale * options.time_sigma, r); },
          static_cast<int>(timed.size()), options.max_iterations, scale > 4);
    }
  }
  return result;
}

double error_quantile(const std::vector<Observation>& runs, const Fit& fit, double share) {
  std::vector<double> errors;
  for (const auto& [job, members] : by_job(runs)) {
    cost::Pricer pricer(members.front()->job, fit.coefficients);
    for (const Observation* run : members) {
      if (run->seconds <= 0) continue;
      errors.push_back(std::abs(run->seconds / pricer.price(run->layout).step_seconds - 1));
    }
  }
  return errors.empty() ? 0.5 : quantile(errors, share);
}

std::map<std::string, double> changed_values(const spec::Coefficients& coefficients) {
  std::map<std::string, double> values;
  for (const spec::CoefficientInfo& info : spec::coefficient_table()) {
    const double value = coefficients.*(info.member);
    if (value != info.default_value) values[std::string(info.name)] = value;
  }
  return values;
}

}  // namespace layline::calibrate
