#include "layline/spec/coefficients.h"

#include <algorithm>

namespace layline::spec {

Coefficients::Coefficients() {
#define LAYLINE_COEFFICIENT(name, value, lower, upper, class_, prior, unit, meaning) this->name = value;
#include "layline/spec/coefficients.inc"
#undef LAYLINE_COEFFICIENT
}

const std::vector<CoefficientInfo>& coefficient_table() {
  static const std::vector<CoefficientInfo> table = {
#define LAYLINE_COEFFICIENT(name, value, lower, upper, class_, prior, unit, meaning) \
  {#name, &Coefficients::name, value, lower, upper, CoefficientClass::class_, prior, unit, meaning},
#include "layline/spec/coefficients.inc"
#undef LAYLINE_COEFFICIENT
  };
  return table;
}

const CoefficientInfo* find_coefficient(std::string_view name) {
  const auto& table = coefficient_table();
  const auto it = std::find_if(table.begin(), table.end(), [&](const auto& info) { return info.name == name; });
  return it == table.end() ? nullptr : &*it;
}

}  // namespace layline::spec
