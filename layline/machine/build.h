// From measurements to the cluster spec of the machine: tables, peaks, links, and what layers and steps take beyond
// their kernels.
#pragma once

#include <string>

#include "layline/machine/samples.h"
#include "layline/spec/cluster.h"

namespace layline::machine {

// Where so large a share of a table's points is noisy, or one that matters, a person is told.
inline constexpr double kNoisySpread = 0.15;

// Of complete samples. Throws base::InputError when points are missing.
spec::Cluster build_cluster(const Samples& samples);

}  // namespace layline::machine
