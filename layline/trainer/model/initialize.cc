#include "layline/trainer/model/initialize.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <string>

#include "layline/trainer/model/mutation.h"

namespace layline::trainer::model {

namespace {

// SplitMix64 (Steele et al. 2014): mixes well enough that neighbouring inputs give unrelated seeds.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t mix(uint64_t seed, const std::string& name) {
  uint64_t state = mix(seed);
  for (const char c : name) state = mix(state ^ static_cast<unsigned char>(c));
  return state;
}

}  // namespace

void initialize(Parameter& parameter, uint64_t seed) {
  const at::NoGradGuard no_grad;
  if (parameter.initial_std == 0) {
    parameter.value.fill_(1);
    return;
  }
  uint64_t weight_seed = mix(seed, parameter.name);
  if (mutated(Mutation::kSeedByRank)) weight_seed = mix(weight_seed + static_cast<uint64_t>(parameter.shard_offset));
  const bool by_row = parameter.sharded_dim == 0;
  const int64_t first_row = by_row ? parameter.shard_offset : 0;
  const at::Tensor row = at::empty({parameter.global_shape[1]}, at::kFloat);
  const at::Tensor here = by_row ? row : row.narrow(0, parameter.shard_offset, parameter.local_shape[1]);
  at::Generator generator = at::detail::createCPUGenerator();
  for (int64_t i = 0; i < parameter.local_shape[0]; ++i) {
    at::Tensor target = parameter.value.select(0, i);
    if (first_row + i >= parameter.global_shape[0]) {
      target.zero_();
      continue;
    }
    generator.set_current_seed(mix(weight_seed + static_cast<uint64_t>(first_row + i)));
    row.normal_(0, parameter.initial_std, generator);
    target.copy_(here);
  }
}

}  // namespace layline::trainer::model
