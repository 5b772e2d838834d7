#include "layline/cost/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "layline/base/error.h"
#include "layline/spec/measured_names.h"

namespace layline::cost {
namespace {

double sharing_of(double num_ranks, double num_cores) { return std::max(1.0, num_ranks / num_cores); }

double threads_of(double num_ranks, double num_cores) { return std::max(1.0, std::floor(num_cores / num_ranks)); }

}  // namespace

Measured::Measured(const spec::Job& job, const spec::Coefficients& coefficients)
    : measurements_(job.cluster.measured),
      ranks_(measurements_->nearest(static_cast<double>(job.num_gpus))),
      alone_(measurements_->nearest(std::min<double>(static_cast<double>(job.num_gpus), measurements_->num_cores))),
      k_(coefficients),
      precision_(job.precision) {
  const double cores = measurements_->num_cores;
  const double ranks = static_cast<double>(job.num_gpus);
  sharing_ = sharing_of(ranks, cores);
  more_sharing_ = sharing_ / sharing_of(ranks_.num_ranks, cores);
  factor_ = k_.measured_compute_scale * sharing_ * alone_.num_threads / threads_of(ranks, cores);
}

const spec::MeasuredTable& Measured::table(const spec::MeasuredRanks& ranks, const std::string& name) {
  const auto found = ranks.tables.find(name);
  if (found != ranks.tables.end()) return found->second;
  throw base::InputError(
      fmt::format("the cluster was not measured completely: {} of {} ranks is missing; measure again "
                  "with `layline bench`",
                  name, ranks.num_ranks));
}

double Measured::seconds(std::string_view what, std::initializer_list<double> sizes) const {
  if (std::any_of(sizes.begin(), sizes.end(), [](double size) { return size <= 0; })) return 0;
  return factor_ * table(alone_, spec::measured::name(what, precision_)).at(std::span(sizes.begin(), sizes.size()));
}

// Groups of a size that was not measured take what the nearest smaller one does, with the bytes and steps of theirs.
double Measured::collective(std::string_view what, spec::Precision precision, int64_t group_size, double bytes) const {
  if (group_size <= 1 || bytes <= 0) return 0;
  const int64_t size = measured_size(what, precision, group_size);
  const double n = static_cast<double>(group_size), m = static_cast<double>(size);
  const double more = (n - 1) / n / ((m - 1) / m);
  const double sizes[] = {bytes * more};
  const double seconds = more_sharing_ * table(ranks_, spec::measured::name(what, precision, size)).at(sizes);
  return k_.measured_collective_scale * seconds + k_.measured_collective_seconds;
}

int64_t Measured::measured_size(std::string_view what, spec::Precision precision, int64_t group_size) const {
  int64_t size = group_size;
  while (size > 2 && ranks_.tables.count(spec::measured::name(what, precision, size)) == 0) --size;
  return size;
}

double Measured::factor(std::string_view what, double hidden, double tokens) const {
  return factor_at(spec::measured::name(what, precision_), hidden, tokens);
}

double Measured::factor(std::string_view what, int64_t group_size, double hidden, double tokens) const {
  const int64_t size = measured_size(what, precision_, group_size);
  return factor_at(spec::measured::name(what, precision_, size), hidden, tokens);
}

double Measured::factor_at(const std::string& name, double hidden, double tokens) const {
  const auto found = ranks_.tables.find(name);
  if (found == ranks_.tables.end()) return 1;
  const std::vector<std::vector<double>>& axes = found->second.axes;
  const double sizes[] = {std::clamp(hidden, axes[0].front(), axes[0].back()),
                          std::clamp(tokens, axes[1].front(), axes[1].back())};
  return found->second.at(sizes);
}

}  // namespace layline::cost
