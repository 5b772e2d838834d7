// Seconds of a job's parts from what `layline bench` measured on its machine, instead of from peaks (docs/model.md, D1
// to D5). A Machine has one where the job's cluster was measured with the job's engine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "layline/spec/coefficients.h"
#include "layline/spec/job.h"
#include "layline/spec/measurements.h"

namespace layline::cost {

class Measured {
 public:
  // Of the ranks of this job, all of which are busy. Throws base::InputError when the file lacks a table.
  Measured(const spec::Job& job, const spec::Coefficients& coefficients);

  spec::Precision precision() const { return precision_; }
  double element_bytes() const { return precision_ == spec::Precision::kFp32 ? 4 : 2; }

  const spec::Coefficients& k() const { return k_; }

  // Seconds from the table of that name (spec/measured_names.h), 0 when a size is 0.
  double seconds(std::string_view what, std::initializer_list<double> sizes) const;
  // Of a collective in which `group_size` ranks take part; 0 for groups of one.
  double collective(std::string_view what, spec::Precision precision, int64_t group_size, double bytes) const;
  // What a layer's pass takes against the sum of its kernels, from the table of that name; at the sizes nearest to
  // these, where it was not measured so far. 1 while there is no such table.
  double factor(std::string_view what, double hidden, double tokens) const;
  // Likewise of a layer that so many ranks share.
  double factor(std::string_view what, int64_t group_size, double hidden, double tokens) const;

  // How many ranks a core has to serve, at least 1: the measured seconds have it inside.
  double sharing() const { return sharing_; }

 private:
  static const spec::MeasuredTable& table(const spec::MeasuredRanks& ranks, const std::string& name);
  // The largest size up to group_size of which there is a table, at least 2.
  int64_t measured_size(std::string_view what, spec::Precision precision, int64_t group_size) const;
  double factor_at(const std::string& name, double hidden, double tokens) const;

  std::shared_ptr<const spec::Measurements> measurements_;
  const spec::MeasuredRanks& ranks_;
  const spec::MeasuredRanks& alone_;  // where kernels were measured: ranks that share no core
  spec::Coefficients k_;
  spec::Precision precision_;
  double sharing_ = 1;
  double more_sharing_ = 1;  // than where it was measured
  double factor_ = 1;        // on seconds of computing, where so many ranks were not measured
};

}  // namespace layline::cost
