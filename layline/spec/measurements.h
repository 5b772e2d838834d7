// What `layline bench` measured on a machine: seconds of products, kernels and collectives over their sizes, for some
// numbers of ranks that are busy at the same time. Part of a cluster spec; the cost model reads times from it instead
// of working them out from peaks.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace layline::spec {

// Seconds over a grid of sizes.
struct MeasuredTable {
  std::vector<std::vector<double>> axes;  // ascending and positive
  std::vector<double> seconds;            // one for each point of the grid, the last axis fastest

  // Between the points seconds are powers of the sizes (linear in logarithms). Beyond the grid they are in proportion
  // where it ends, and below where it begins as its first point.
  double at(std::span<const double> sizes) const;
};

// All that was measured while so many ranks were busy.
struct MeasuredRanks {
  int num_ranks = 1;
  int num_threads = 1;                          // of each rank
  std::map<std::string, MeasuredTable> tables;  // by name, as measured_names.h has them
};

struct Measurements {
  std::string engine;   // whose kernels were measured
  std::string machine;  // processor, cores and memory, to tell machines apart
  int num_cores = 1;
  double memory_bytes = 0;              // of the machine
  std::vector<MeasuredRanks> by_ranks;  // by number of ranks, ascending; not empty

  // Measured with so many ranks, or with the number nearest to it.
  const MeasuredRanks& nearest(double num_ranks) const;
};

}  // namespace layline::spec
