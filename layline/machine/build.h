// From measurements to the cluster spec of the machine: tables, peaks, links, and what layers and steps take beyond
// their kernels.
#pragma once

#include <string>

#include "layline/machine/samples.h"
#include "layline/spec/cluster.h"

namespace layline::machine {

// Of complete samples. Throws base::InputError when points are missing.
spec::Cluster build_cluster(const Samples& samples);

}  // namespace layline::machine
