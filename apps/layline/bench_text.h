// What `layline bench` says of a machine.
#pragma once

#include <string>

#include "layline/machine/samples.h"
#include "layline/spec/cluster.h"

namespace layline::app {

// A screen: rates and how far they are from the peak, links, what is shared, and which measurements are noisy.
std::string bench_text(const spec::Cluster& cluster, const machine::Samples& samples);

}  // namespace layline::app
