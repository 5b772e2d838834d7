#include "layline/sweep/belief.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

namespace layline::sweep {
namespace {

// Density over probability at z, also where both vanish.
double hazard(double z) {
  constexpr double kTail = -8;
  return z > kTail ? normal_density(z) / normal_probability(z) : -z - 1 / z;
}

}  // namespace

double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

double normal_probability(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

Belief::Belief(std::vector<double> mean, std::vector<double> covariance)
    : mean_(std::move(mean)), covariance_(std::move(covariance)) {
  assert(covariance_.size() == mean_.size() * mean_.size());
}

double Belief::standard_deviation(size_t i) const { return std::sqrt(std::max(0.0, covariance(i, i))); }

void Belief::learn_value(size_t i, double value, double noise) {
  const double variance = covariance(i, i) + noise * noise;
  update(i, (value - mean_[i]) / variance, 1 / variance);
}

void Belief::learn_at_most(size_t i, double bound, double noise) {
  const double variance = covariance(i, i) + noise * noise;
  const double sd = std::sqrt(variance);
  const double z = (bound - mean_[i]) / sd;
  const double lambda = hazard(z);
  update(i, -lambda / sd, lambda * (lambda + z) / variance);
}

void Belief::learn_at_least(size_t i, double bound, double noise) {
  const double variance = covariance(i, i) + noise * noise;
  const double sd = std::sqrt(variance);
  const double z = (mean_[i] - bound) / sd;
  const double lambda = hazard(z);
  update(i, lambda / sd, lambda * (lambda + z) / variance);
}

void Belief::update(size_t i, double gain, double loss) {
  const size_t n = size();
  std::vector<double> column(n);
  for (size_t j = 0; j < n; ++j) column[j] = covariance(j, i);
  for (size_t j = 0; j < n; ++j) {
    mean_[j] += gain * column[j];
    const double factor = loss * column[j];
    if (factor == 0) continue;
    for (size_t k = 0; k < n; ++k) covariance(j, k) -= factor * column[k];
  }
}

Belief Belief::first(size_t n) const {
  std::vector<double> covariance_of_first;
  covariance_of_first.reserve(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) covariance_of_first.push_back(covariance(i, j));
  }
  return {std::vector<double>(mean_.begin(), mean_.begin() + static_cast<ptrdiff_t>(n)),
          std::move(covariance_of_first)};
}

}  // namespace layline::sweep
