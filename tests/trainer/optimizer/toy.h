// A rank's parameters without a model around them, and gradients that depend on nothing but the parameter's name, the
// element, the step and the micro-batch.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "layline/trainer/model/parameter.h"

namespace layline::trainer::optimizer {

using model::Parameter;
using model::ParameterGroup;
using model::TensorSharding;

// One virtual stage.
class Toy {
 public:
  // A whole weight, a group of its own; vectors do not decay.
  Parameter& add(const std::string& name, std::vector<int64_t> shape, int64_t bucket = 0) {
    return *add_group({{name, std::move(shape)}}, bucket).parameters.front();
  }
  // Weights that lie next to each other.
  ParameterGroup& add_group(const std::vector<std::pair<std::string, std::vector<int64_t>>>& members, int64_t bucket) {
    ParameterGroup& group = groups_.emplace_back();
    group.bucket = bucket;
    for (const auto& [name, shape] : members) {
      Parameter& parameter = parameters_.emplace_back();
      parameter.name = name;
      parameter.global_shape = parameter.local_shape = shape;
      parameter.decays = shape.size() > 1;
      group.parameters.push_back(&parameter);
    }
    return group;
  }

  std::vector<ParameterGroup*> groups() {
    std::vector<ParameterGroup*> groups;
    for (ParameterGroup& group : groups_) groups.push_back(&group);
    return groups;
  }
  std::deque<Parameter>& parameters() { return parameters_; }
  Parameter& operator[](const std::string& name) {
    for (Parameter& parameter : parameters_) {
      if (parameter.name == name) return parameter;
    }
    throw std::logic_error("no " + name);
  }

  // As a backward pass does.
  void backward(const std::function<at::Tensor(const Parameter&)>& gradient_of) {
    for (Parameter& parameter : parameters_) {
      for (int64_t use = 0; use < parameter.uses; ++use) {
        parameter.main_grad.add_(gradient_of(parameter).to(parameter.main_grad.scalar_type()));
        parameter.on_gradient();
      }
    }
  }

 private:
  std::deque<Parameter> parameters_;
  std::deque<ParameterGroup> groups_;
};

// Numbers between -1 and 1, fp64, that differ with all arguments.
inline at::Tensor made_up(const std::string& name, at::IntArrayRef shape, int64_t key = 0) {
  double phase = 0.37 * static_cast<double>(key);
  for (const char c : name) phase = std::fmod(phase * 1.7 + static_cast<double>(c), 1000.0);
  int64_t num = 1;
  for (const int64_t size : shape) num *= size;
  return (at::arange(num, at::kDouble) * 12.9898 + phase).sin().view(shape);
}

inline at::Tensor made_up(const Parameter& parameter, int64_t key = 0) {
  return made_up(parameter.name, parameter.local_shape, key);
}

}  // namespace layline::trainer::optimizer
