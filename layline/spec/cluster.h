// A kind of node and the network that joins such nodes. How many GPUs of it are used is the Job's business.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layline/spec/calibration.h"
#include "layline/spec/gpu.h"
#include "layline/spec/measurements.h"

namespace layline::spec {

struct Cluster {
  std::string name;  // "a100-80gb"
  std::string title;
  std::vector<std::string> aliases;
  std::vector<std::string> interconnect_aliases;  // parts of run records' interconnect column that mean this network
  Gpu gpu;
  int gpus_per_node = 8;
  // Inside the node, per GPU and direction (NVLink or PCIe), and the latency of one hop.
  double intra_bytes_per_second = 0;
  double intra_latency_seconds = 0;
  // Between nodes, per node and direction over all its NICs; no single GPU gets more than
  // inter_bytes_per_second_per_gpu.
  double inter_bytes_per_second_per_node = 0;
  double inter_bytes_per_second_per_gpu = 0;
  double inter_latency_seconds = 0;
  int max_nodes = 0;  // 0: no limit stated
  std::map<std::string, std::string> sources;
  // Of a machine that `layline bench` measured; else null. The calibration is for the engine that was measured.
  std::shared_ptr<const Measurements> measured;
  bool is_measured_with(const std::string& engine) const { return measured && measured->engine == engine; }
  std::shared_ptr<const Calibration> calibration;
};

}  // namespace layline::spec
