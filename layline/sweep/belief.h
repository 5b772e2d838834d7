// What is believed of some unknown numbers that go together: a joint normal distribution that learns from measured
// ones.
//
//   Belief belief(means, covariance);
//   belief.learn_value(3, 0.12, 0.01);   // the fourth was measured; those that go with it move too
#pragma once

#include <cstddef>
#include <vector>

namespace layline::sweep {

class Belief {
 public:
  // covariance: row by row, symmetric and positive semidefinite.
  Belief(std::vector<double> mean, std::vector<double> covariance);

  size_t size() const { return mean_.size(); }
  double mean(size_t i) const { return mean_[i]; }
  double standard_deviation(size_t i) const;

  // Number i was measured, with normal noise of this standard deviation, above 0. Exact.
  void learn_value(size_t i, double value, double noise);
  // Number i plus noise turned out to be at most (at least) this. The distribution that has the same moments takes the
  // place of the true one (assumed density filtering).
  void learn_at_most(size_t i, double bound, double noise);
  void learn_at_least(size_t i, double bound, double noise);

  // The first n numbers alone.
  Belief first(size_t n) const;

 private:
  double& covariance(size_t i, size_t j) { return covariance_[i * mean_.size() + j]; }
  double covariance(size_t i, size_t j) const { return covariance_[i * mean_.size() + j]; }
  // mean += gain · column i, covariance -= loss · column i · row i.
  void update(size_t i, double gain, double loss);

  std::vector<double> mean_;
  std::vector<double> covariance_;
};

double normal_density(double x);
double normal_probability(double x);  // of being at most x

}  // namespace layline::sweep
