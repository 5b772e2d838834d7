// The script that starts a framework's program on every GPU of a job: Slurm's sbatch or torchrun. Private to this
// folder.
#pragma once

#include <string>
#include <vector>

#include "layline/export/writers.h"

namespace layline::exporting {

// Whole nodes, or a part of one.
struct Machines {
  int64_t num_nodes = 1;
  int64_t gpus_per_node = 1;
};
Machines machines_of(const spec::Job& job);

struct Script {
  Framework framework = Framework::kMegatron;
  std::vector<std::string> environment;  // "NAME=VALUE", exported
  std::vector<std::string> arguments;    // a line each, of the array ARGS; none: no array
  std::string checkout;                  // variable with the framework's folder, which must be set: "MEGATRON_PATH"
  std::string program;                   // what torchrun starts, with its arguments, quoted for the shell
  bool is_python = true;
};

std::string script_text(const Plan& plan, const Script& script);

// "sbatch NAME" or "bash NAME".
std::string start_command(const Plan& plan, const std::string& name);

// A word as the shell takes it: quoted where it must be.
std::string shell_quoted(const std::string& word);

}  // namespace layline::exporting
