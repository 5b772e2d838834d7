#include "layline/spec/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"

namespace layline::spec {
namespace {

constexpr int64_t kMaxGpus = 1'000'000;
constexpr double kMaxTokens = 1099511627776.0;  // 2^40

void check_count(const char* name, int64_t count, int64_t upper) {
  if (count < 1 || count > upper) throw base::InputError(name, fmt::format("found {}, want 1 to {}", count, upper));
}

}  // namespace

std::string measured_job_key(const Job& job) {
  const Model& m = job.model;
  return fmt::format("L{} h{} n{} k{} f{} V{}, {} GPUs, batch {}, sequence {}, {}", m.num_layers, m.hidden, m.num_heads,
                     m.num_kv_heads, m.ffn_hidden, m.vocab, job.num_gpus, job.global_batch, job.sequence_length,
                     name_of(job.precision));
}

void check_job(const Job& job) {
  check_model(job.model, "model " + job.model.name);
  check_count("--gpus", job.num_gpus, kMaxGpus);
  check_count("--global-batch", job.global_batch, int64_t{1} << 32);
  check_count("--seq-len", job.sequence_length, int64_t{1} << 32);
  if (job.tokens_per_step() > kMaxTokens) {
    throw base::InputError("job", fmt::format("{} tokens a step, want at most 2^40", job.tokens_per_step()));
  }
  const int64_t node = job.cluster.gpus_per_node;
  if (job.num_gpus > node && job.num_gpus % node != 0) {
    throw base::InputError(
        "--gpus", fmt::format("{} GPUs are neither less than a node nor whole nodes of {}", job.num_gpus, node));
  }
  if (job.cluster.max_nodes > 0 && job.num_gpus > node * job.cluster.max_nodes) {
    throw base::InputError(
        "--gpus", fmt::format("cluster {} has {} nodes of {} GPUs", job.cluster.name, job.cluster.max_nodes, node));
  }
  if (job.cluster.gpu.peak_flops_per_second(job.precision) <= 0) {
    throw base::InputError("--precision", fmt::format("{} has no {}", job.cluster.gpu.title, name_of(job.precision)));
  }
  const auto& precisions = job.engine.precisions;
  if (std::find(precisions.begin(), precisions.end(), job.precision) == precisions.end()) {
    throw base::InputError("--precision", fmt::format("engine {} has no {}", job.engine.name, name_of(job.precision)));
  }
}

}  // namespace layline::spec
