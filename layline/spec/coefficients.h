// The few physical coefficients of the cost and memory model. Every one has an analytic default that is sane without
// any measurement; a Calibration replaces some by values fitted to runs.
//
// `coefficient_table()` is the only list of them: names, units, bounds and meaning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace layline::spec {

struct Coefficients {
  // Set by the table's defaults; see coefficients.cc for each one's meaning, unit and bounds.
  Coefficients();
#define LAYLINE_COEFFICIENT(name, value, lower, upper, class_, prior, unit, meaning) double name;
#include "layline/spec/coefficients.inc"
#undef LAYLINE_COEFFICIENT
};

// What a fit learns a coefficient from: step times, those on measured machines, or bytes and verdicts.
enum class CoefficientClass { kTime, kMeasured, kMemory };

struct CoefficientInfo {
  std::string_view name;
  double Coefficients::* member;
  double default_value, lower, upper;
  CoefficientClass kind;
  double prior;
  std::string_view unit, meaning;
};

const std::vector<CoefficientInfo>& coefficient_table();

// nullptr when there is no such coefficient.
const CoefficientInfo* find_coefficient(std::string_view name);

}  // namespace layline::spec
