#include "apps/layline_train/environment.h"

#include <fmt/format.h>

#include <cstdlib>

#include "layline/base/error.h"
#include "layline/base/number.h"

namespace layline::app {
namespace {

using trainer::loop::Launch;

constexpr int64_t kMaxRanks = 1'000'000;

// What one kind of launcher calls its variables.
struct Names {
  const char* launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_size;  // ranks on this machine; nullptr: it does not say
};

constexpr Names kTorchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kSlurm = {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr};

struct Ranks {
  int64_t rank = 0, world_size = 1, local_rank = 0;
};

class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {}

  std::optional<std::string> get(const char* name) const {
    std::optional<std::string> value = variables_(name);
    return value && !value->empty() ? value : std::nullopt;
  }

  std::optional<int64_t> number(const char* name, int64_t lower, int64_t upper) const {
    const std::optional<std::string> value = get(name);
    if (!value) return std::nullopt;
    return base::parse_whole_number(*value, lower, upper, name);
  }

  // The first of these that is set.
  std::optional<std::string> first(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (std::optional<std::string> value = get(name)) return value;
    }
    return std::nullopt;
  }

 private:
  const Variables& variables_;
};

// None when neither the rank nor the size is there.
std::optional<Ranks> ranks_of(const Environment& environment, const Names& names) {
  const bool has_rank = environment.get(names.rank).has_value();
  const bool has_size = environment.get(names.world_size).has_value();
  if (!has_rank && !has_size) return std::nullopt;
  if (!has_rank || !has_size) {
    throw base::InputError(has_rank ? names.rank : names.world_size,
                           fmt::format("is set, but {} is not", has_rank ? names.world_size : names.rank));
  }
  Ranks ranks;
  ranks.world_size = *environment.number(names.world_size, 1, kMaxRanks);
  ranks.rank = *environment.number(names.rank, 0, ranks.world_size - 1);
  ranks.local_rank = environment.number(names.local_rank, 0, kMaxRanks).value_or(ranks.rank);
  return ranks;
}

// The script of a batch job is no task of it: it has the number of tasks, or its own number 0, but not both.
std::optional<Ranks> slurm_ranks(const Environment& environment) {
  if (!environment.get(kSlurm.rank) || !environment.get(kSlurm.world_size)) return std::nullopt;
  return ranks_of(environment, kSlurm);
}

// torchrun under srun or mpirun is a launcher in a launcher; RANK without torchrun that differs is left over.
void check_agreement(const Environment& environment, const Ranks& torchrun, const Names& names,
                     const std::optional<Ranks>& other) {
  if (!other || other->world_size == 1 || environment.get("TORCHELASTIC_RUN_ID")) return;
  if (other->rank == torchrun.rank && other->world_size == torchrun.world_size) return;
  throw base::InputError(
      "RANK",
      fmt::format("this is rank {} of {} by RANK and WORLD_SIZE, but {} of {} by {} and {}; unset those that "
                  "are left over",
                  torchrun.rank, torchrun.world_size, other->rank, other->world_size, names.rank, names.world_size));
}

[[noreturn]] void throw_no_address(const char* launcher, const char* example) {
  throw base::InputError("MASTER_ADDR",
                         fmt::format("is not set, and the ranks of this {} job are on several machines: set it to the "
                                     "host of rank 0{}",
                                     launcher, example));
}

std::string slurm_address(const Environment& environment) {
  const int64_t num_nodes =
      environment.number("SLURM_STEP_NUM_NODES", 1, kMaxRanks)
          .value_or(environment.number("SLURM_NNODES", 1, kMaxRanks)
                        .value_or(environment.number("SLURM_JOB_NUM_NODES", 1, kMaxRanks).value_or(1)));
  if (num_nodes == 1) return Launch{}.master_addr;
  if (const auto list = environment.first({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})) {
    return first_host(*list);
  }
  if (const auto address = environment.get("SLURM_LAUNCH_NODE_IPADDR")) return *address;
  throw_no_address(kSlurm.launcher, "");
}

std::string loopback_if_alone(const Environment& environment, const Names& names, const Ranks& ranks,
                              const char* example) {
  const std::optional<int64_t> local_size = environment.number(names.local_size, 1, kMaxRanks);
  if (local_size && *local_size < ranks.world_size) throw_no_address(names.launcher, example);
  return Launch{}.master_addr;
}

// The same on all ranks of a job, and most likely not that of another job on the machine.
int port_of_job(const std::optional<std::string>& id) {
  if (!id) return Launch{}.master_port;
  constexpr uint32_t kFirstPort = 20000, kNumPorts = 10000;
  uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : *id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>(kFirstPort + hash % kNumPorts);
}

// At MASTER_PORT there is torchrun's own store, unless it was told to leave the port to its ranks.
std::optional<int> port_under_torchrun(const Environment& environment) {
  if (environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True") return std::nullopt;
  std::string job;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}) {
    job += environment.get(name).value_or("") + ".";
  }
  return port_of_job(job);
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Launch find_launch(const Variables& variables) {
  const Environment environment(variables);
  const std::optional<Ranks> torchrun = ranks_of(environment, kTorchrun);
  const std::optional<Ranks> open_mpi = ranks_of(environment, kOpenMpi);
  const std::optional<Ranks> slurm = slurm_ranks(environment);
  Launch launch;
  Ranks ranks;
  const auto address = environment.get("MASTER_ADDR");
  if (torchrun) {
    check_agreement(environment, *torchrun, kOpenMpi, open_mpi);
    if (!open_mpi) check_agreement(environment, *torchrun, kSlurm, slurm);
    ranks = *torchrun;
    if (!address) launch.master_addr = loopback_if_alone(environment, kTorchrun, ranks, "");
  } else if (open_mpi) {
    ranks = *open_mpi;
    if (!address) {
      launch.master_addr = loopback_if_alone(environment, kOpenMpi, ranks, " (mpirun -x MASTER_ADDR=HOST)");
    }
    launch.master_port = port_of_job(environment.first({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}));
  } else if (slurm) {
    ranks = *slurm;
    if (!address) launch.master_addr = slurm_address(environment);
    const auto job = environment.first({"SLURM_JOB_ID", "SLURM_JOBID"});
    if (job) launch.master_port = port_of_job(*job + "." + environment.get("SLURM_STEP_ID").value_or(""));
  }
  launch.rank = ranks.rank;
  launch.world_size = ranks.world_size;
  launch.local_rank = ranks.local_rank;
  launch.shares_cores = !environment.get("OMP_NUM_THREADS");
  if (address) launch.master_addr = *address;
  if (const auto port = environment.number("MASTER_PORT", 1, 65535)) launch.master_port = static_cast<int>(*port);
  if (const auto port = torchrun ? port_under_torchrun(environment) : std::nullopt) launch.master_port = *port;
  return launch;
}

bool is_launched(const Variables& variables) {
  const Environment environment(variables);
  return environment.get(kOpenMpi.rank).has_value() || environment.get("TORCHELASTIC_RUN_ID").has_value();
}

std::string first_host(const std::string& node_list) {
  std::string host;
  for (size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    const size_t close = node_list.find(']', i);
    const size_t end = node_list.find_first_of("-,]", i);
    if (close == std::string::npos) throw base::InputError("SLURM_JOB_NODELIST", "found \"" + node_list + "\"");
    host += node_list.substr(i + 1, end - i - 1);
    i = close;
  }
  return host;
}

}  // namespace layline::app
