// Spec files of every kind: any text parses or is an InputError. The first byte chooses the kind.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layline/base/error.h"
#include "layline/spec/registry.h"

namespace {

namespace spec = layline::spec;

void check_model(std::string_view json) {
  const spec::Model model = spec::parse_model(json, "fuzz.json");
  const spec::Model again = spec::parse_model(spec::to_json(model), "again.json");
  if (again.num_parameters() != model.num_parameters()) std::abort();
}

void check_calibration(std::string_view json) {
  const spec::Calibration calibration = spec::parse_calibration(json, "fuzz.json");
  const spec::Calibration again = spec::parse_calibration(spec::to_json(calibration), "again.json");
  if (again.values != calibration.values) std::abort();
  try {
    calibration.coefficients();
  } catch (const layline::base::InputError&) {
  }
}

void check(char kind, std::string_view json) {
  switch (kind) {
    case 'm':
      return check_model(json);
    case 'g':
      spec::parse_gpu(json, "fuzz.json");
      return;
    case 'c':
      spec::parse_cluster(json, "fuzz.json");
      return;
    case 'e':
      spec::parse_engine(json, "fuzz.json");
      return;
    case 'k':
      return check_calibration(json);
    default:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    check(text.front(), text.substr(1));
  } catch (const layline::base::InputError&) {
  }
  return 0;
}
