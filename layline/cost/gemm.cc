#include "layline/cost/gemm.h"

#include <algorithm>
#include <cmath>

namespace layline::cost {

double wave_efficiency(double m, double n, int num_sms) {
  struct Tile {
    double rows, columns;
  };
  constexpr Tile kTiles[] = {{128, 256}, {256, 128}, {128, 128}};
  const double sms = std::max(1, num_sms);
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    const double waves = std::ceil(tiles / sms);
    best = std::max(best, m * n / (waves * sms * tile.rows * tile.columns));
  }
  return best;
}

double gemm_seconds(const Machine& machine, double m, double n, double k, double operand_bytes) {
  const double depth_efficiency = k / (k + machine.k.gemm_depth_half);
  const double compute =
      2 * m * n * k / (machine.gemm_flops_per_second * depth_efficiency * wave_efficiency(m, n, machine.num_sms));
  const double traffic = (m * k + k * n + m * n) * operand_bytes / machine.memory_bytes_per_second;
  return std::max(compute, traffic);
}

double linear_forward_seconds(const Machine& machine, double m, double inputs, double outputs) {
  return gemm_seconds(machine, m, outputs, inputs);
}

double linear_backward_seconds(const Machine& machine, double m, double inputs, double outputs) {
  return gemm_seconds(machine, m, inputs, outputs) + gemm_seconds(machine, inputs, outputs, m);
}

}  // namespace layline::cost
