// What is to be trained, on what, by which engine: everything but the layout.
#pragma once

#include <cstdint>
#include <string>

#include "layline/spec/calibration.h"
#include "layline/spec/cluster.h"
#include "layline/spec/engine.h"
#include "layline/spec/model.h"

namespace layline::spec {

struct Job {
  Model model;
  Cluster cluster;
  Engine engine;
  Calibration calibration;
  int64_t num_gpus = 0;
  int64_t global_batch = 0;     // sequences a step
  int64_t sequence_length = 0;  // tokens
  Precision precision = Precision::kBf16;

  double tokens_per_step() const { return static_cast<double>(global_batch) * static_cast<double>(sequence_length); }
};

// What makes two jobs the same for measured runs: the model's sizes, GPUs, batch, sequence length and precision.
std::string measured_job_key(const Job& job);

// Throws base::InputError: counts below 1 or beyond their limits (1,000,000 GPUs; 2^40 tokens a step), GPUs that are
// neither less than a node nor whole nodes, a precision that the GPU or the engine lacks, experts.
void check_job(const Job& job);

}  // namespace layline::spec
