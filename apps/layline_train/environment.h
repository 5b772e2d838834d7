// Which rank this process is, from what its launcher put into the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "layline/trainer/loop/train.h"

namespace layline::app {

// The value of an environment variable; none when it is not set or empty.
using Variables = std::function<std::optional<std::string>(const char* name)>;

// Of this process.
std::optional<std::string> variable(const char* name);

// torchrun's RANK and WORLD_SIZE come first, then Open MPI's and Slurm's own variables; without any this is the only
// rank. MASTER_ADDR is the loopback where all ranks share a machine, and the first host of a Slurm job. MASTER_PORT
// follows from the job's id, also under torchrun where torchrun serves at that port itself, else it is 29500.
//
// Throws base::InputError: variables that are no numbers or out of range, one of a pair without the other, RANK and
// WORLD_SIZE that contradict the launcher's own (left over in a shell), several machines without MASTER_ADDR.
trainer::loop::Launch find_launch(const Variables& variables);

// Whether mpirun or torchrun started this process. They end their ranks, but not when they are killed themselves.
bool is_launched(const Variables& variables);

// The first host of a Slurm node list: "rack[2-3]n[07-09,12],login" → "rack2n07".
std::string first_host(const std::string& node_list);

}  // namespace layline::app
