// Spec texts that tests change a little, and what an error says.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "layline/base/error.h"
#include "layline/spec/registry.h"

namespace layline::spec::test {

// The JSON of a shipped spec.
inline std::string shipped(SpecKind kind, std::string_view name) {
  for (const ShippedSpec& spec : shipped_specs()) {
    if (spec.kind == kind && spec.name == name) return std::string(spec.json);
  }
  ADD_FAILURE() << "no shipped spec " << name;
  return "";
}

// The text with the only `from` made `to`.
inline std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    ADD_FAILURE() << '"' << from << "\" is not there once";
    return text;
  }
  return text.replace(at, from.size(), to);
}

// What the InputError of `run` says; "" and a failed test when there is none.
template <typename Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const base::InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

// Parses without keeping the result.
inline void parse(SpecKind kind, std::string_view json, const std::string& where) {
  switch (kind) {
    case SpecKind::kModel:
      parse_model(json, where);
      return;
    case SpecKind::kGpu:
      parse_gpu(json, where);
      return;
    case SpecKind::kCluster:
      parse_cluster(json, where);
      return;
    case SpecKind::kEngine:
      parse_engine(json, where);
      return;
    case SpecKind::kCalibration:
      parse_calibration(json, where);
      return;
  }
}

}  // namespace layline::spec::test
