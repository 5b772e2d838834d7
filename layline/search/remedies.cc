#include "layline/search/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace layline::search {
namespace {

SearchOptions plain(const SearchOptions& options) {
  SearchOptions inner = options;
  inner.top = 1;
  inner.remedies = false;
  inner.refine = false;
  return inner;
}

std::optional<Remedy> try_job(const spec::Job& job, const SearchOptions& options, std::string change) {
  const Plan plan = find_plan(job, plain(options));
  if (plan.best.empty()) return std::nullopt;
  return Remedy{std::move(change), plan.best.front()};
}

std::optional<Remedy> more_gpus(const spec::Job& job, SearchOptions options) {
  options.fix.dp.reset();
  const int64_t node = job.cluster.gpus_per_node;
  for (const double factor : {1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0}) {
    spec::Job larger = job;
    const auto wanted = static_cast<int64_t>(static_cast<double>(job.num_gpus) * factor);
    larger.num_gpus = job.num_gpus >= node ? (wanted + node - 1) / node * node : std::min(wanted, node);
    if (larger.num_gpus <= job.num_gpus || larger.num_gpus > 1'000'000) continue;
    if (auto remedy = try_job(larger, options, fmt::format("{} GPUs", larger.num_gpus))) return remedy;
  }
  return std::nullopt;
}

std::optional<Remedy> shorter_sequences(const spec::Job& job, const SearchOptions& options) {
  for (const int64_t divisor : {2, 4, 8, 16}) {
    if (job.sequence_length % divisor != 0) break;
    spec::Job shorter = job;
    shorter.sequence_length = job.sequence_length / divisor;
    shorter.global_batch = job.global_batch * divisor;
    if (auto remedy = try_job(shorter, options, fmt::format("sequences of {} tokens", shorter.sequence_length))) {
      return remedy;
    }
  }
  return std::nullopt;
}

std::optional<Remedy> zero_three(const spec::Job& job, const SearchOptions& options) {
  const auto& stages = job.engine.zero_stages;
  if (options.fix.zero || std::find(stages.begin(), stages.end(), 3) != stages.end()) return std::nullopt;
  spec::Job sharded = job;
  sharded.engine.zero_stages = {3};
  return try_job(sharded, options, fmt::format("ZeRO-3, which {} does not have", job.engine.title));
}

std::optional<Remedy> recomputation(const spec::Job& job, SearchOptions options) {
  using layout::Checkpointing;
  const auto& kinds = job.engine.checkpointing;
  const bool has = std::find(kinds.begin(), kinds.end(), Checkpointing::kFull) != kinds.end();
  if (options.fix.checkpointing && has && *options.fix.checkpointing != Checkpointing::kFull) {
    options.fix.checkpointing.reset();
    options.fix.full_layers.reset();
    return try_job(job, options, "ckpt=full");
  }
  return std::nullopt;
}

}  // namespace

std::vector<Remedy> find_remedies(const spec::Job& job, const SearchOptions& options) {
  std::vector<Remedy> remedies;
  if (auto remedy = recomputation(job, options)) remedies.push_back(std::move(*remedy));
  if (auto remedy = zero_three(job, options)) remedies.push_back(std::move(*remedy));
  if (auto remedy = more_gpus(job, options)) remedies.push_back(std::move(*remedy));
  if (auto remedy = shorter_sequences(job, options)) remedies.push_back(std::move(*remedy));
  return remedies;
}

}  // namespace layline::search
