#include "layline/export/script.h"

#include <fmt/format.h>

#include <algorithm>

namespace layline::exporting {
namespace {

bool is_slurm(const Plan& plan) { return plan.options.launcher == Launcher::kSlurm; }

std::string head(const Plan& plan, const Script& script, const Machines& machines) {
  std::string text = "#!/bin/bash\n";
  if (is_slurm(plan)) {
    text += fmt::format(
        "#SBATCH --job-name=layline\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node={}\n",
        machines.num_nodes, machines.gpus_per_node);
    if (machines.num_nodes > 1) text += "#SBATCH --exclusive\n";
  }
  text += fmt::format("# {}\n# Written by `layline export` for {} {}.\n", plan.headline, title_of(script.framework),
                      version_of(script.framework));
  return text + "set -euo pipefail\n";
}

// What the ranks meet at. Slurm's variables know the nodes; elsewhere the user does.
std::string rendezvous(const Plan& plan, const Machines& machines) {
  if (machines.num_nodes == 1) return "";
  if (is_slurm(plan)) {
    return "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)\n"
           "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\n";
  }
  return fmt::format(
      "# Start this on each of the {} nodes, with MASTER_ADDR set to one of them.\n"
      ": \"${{MASTER_ADDR:?the name of one of the nodes, the same on all}}\"\nMASTER_PORT=${{MASTER_PORT:-29500}}\n",
      machines.num_nodes);
}

std::string torchrun(const Plan& plan, const Script& script, const Machines& machines) {
  std::string line = is_slurm(plan) ? "srun --kill-on-bad-exit=1 torchrun" : "torchrun";
  if (!script.is_python) line += " --no-python";
  if (machines.num_nodes == 1) {
    line += fmt::format(" --standalone --nnodes 1 --nproc-per-node {}", machines.gpus_per_node);
  } else {
    line += fmt::format(
        " --nnodes {} --nproc-per-node {} \\\n  --rdzv-id {} --rdzv-backend c10d "
        "--rdzv-endpoint \"$MASTER_ADDR:$MASTER_PORT\"",
        machines.num_nodes, machines.gpus_per_node, is_slurm(plan) ? "\"$SLURM_JOB_ID\"" : "layline");
  }
  return line + " \\\n  " + script.program + "\n";
}

}  // namespace

Machines machines_of(const spec::Job& job) {
  const int64_t node = job.cluster.gpus_per_node;
  return job.num_gpus <= node ? Machines{1, job.num_gpus} : Machines{job.num_gpus / node, node};
}

std::string script_text(const Plan& plan, const Script& script) {
  const Machines machines = machines_of(plan.job);
  std::string text = head(plan, script, machines);
  // sbatch runs a copy of the script, but in the folder where it was called.
  text += is_slurm(plan) ? "cd \"${SLURM_SUBMIT_DIR:-.}\"\n" : "cd \"$(dirname \"$0\")\"\n";
  if (!script.checkout.empty()) {
    text += fmt::format(": \"${{{}:?the folder of {} {}}}\"\n", script.checkout, title_of(script.framework),
                        version_of(script.framework));
  }
  for (const std::string& variable : script.environment) text += "export " + variable + "\n";
  text += rendezvous(plan, machines);
  if (!script.arguments.empty()) {
    text += "\nARGS=(\n";
    for (const std::string& line : script.arguments) text += "  " + line + "\n";
    text += ")\n";
  }
  return text + "\n" + torchrun(plan, script, machines);
}

std::string start_command(const Plan& plan, const std::string& name) {
  return (is_slurm(plan) ? "sbatch " : "bash ") + name;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+%@";
  const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace layline::exporting
