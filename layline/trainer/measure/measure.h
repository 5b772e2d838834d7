// Measures the trainer's products, kernels and collectives on this machine, with all ranks busy at the same time.
//
//   measure_missing(launch, "machine.json.samples");   // on every rank
#pragma once

#include <string>

#include "layline/trainer/loop/train.h"

namespace layline::trainer::measure {

// Every point of machine::points_for(launch.world_size) that the file lacks; rank 0 appends a line for each as soon as
// it is known. The file has the machine's line already. Throws base::InputError, base::RunError, comm::CommError.
void measure_missing(const loop::Launch& launch, const std::string& samples_file);

}  // namespace layline::trainer::measure
