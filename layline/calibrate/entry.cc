#include "layline/calibrate/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/calibrate/predict.h"
#include "layline/calibrate/run_job.h"
#include "layline/layout/legality.h"
#include "layline/spec/registry.h"

namespace layline::calibrate {
namespace {

std::string job_key(const spec::Job& job, const runs::RunRecord& r) {
  const spec::Model& m = job.model;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", job.engine.name, job.cluster.name,
                     job.cluster.gpus_per_node, job.cluster.gpu.memory_bytes, m.num_layers, m.hidden, m.num_heads,
                     m.num_kv_heads, m.ffn_hidden, m.vocab, job.num_gpus, job.global_batch, job.sequence_length,
                     spec::name_of(job.precision), r.model) +
         r.mlp + (m.tied_embeddings ? "tied" : "");
}

// Whether a calibration was fitted to the group of this entry, by name or, since names may differ, by what was run.
bool has_seen(const spec::Calibration& calibration, const Entry& entry, LeaveOut leave_out) {
  for (const spec::LeftOutError& seen : calibration.left_out) {
    if (seen.name == entry.sweep || seen.name == entry.record->model) return true;
  }
  const auto part = [&](const std::string& key) {
    return leave_out == LeaveOut::kModel ? key.substr(0, key.find(',')) : key;
  };
  const std::string own = part(spec::measured_job_key(*entry.job));
  return std::any_of(calibration.measured.begin(), calibration.measured.end(),
                     [&](const spec::MeasuredJob& measured) { return part(measured.job) == own; });
}

void check_is_used(const spec::Cluster& cluster, const std::string& where, const std::vector<runs::RunTable>& tables) {
  std::set<std::string> found;
  for (const runs::RunTable& table : tables) {
    for (const runs::RunRecord& record : table.records) found.insert(record.hardware);
  }
  if (found.count(cluster.name) != 0) return;
  throw base::InputError(
      where, fmt::format("is cluster \"{}\", on which no run of the tables was: their hardware is {}", cluster.name,
                         fmt::join(found, ", ")));
}

}  // namespace

std::string score_reason(const runs::RunRecord& record) {
  if (record.scored && !*record.scored) return "the record says scored 0";
  if (!record.status) return "no status in the record";
  switch (*record.status) {
    case runs::RunStatus::kOk:
    case runs::RunStatus::kOom:
      return "";
    default:
      return fmt::format("status {} is not scored", runs::name_of(*record.status));
  }
}

std::vector<Entry> entries_of(const std::vector<runs::RunTable>& tables, const EntryOptions& options) {
  std::optional<spec::Cluster> cluster;
  if (!options.cluster.empty()) {
    cluster = spec::get_cluster(options.cluster);
    check_is_used(*cluster, options.cluster, tables);
  }
  std::vector<Entry> entries;
  std::map<std::string, std::shared_ptr<spec::Job>> jobs;
  for (const runs::RunTable& table : tables) {
    for (const runs::RunRecord& record : table.records) {
      Entry entry;
      entry.record = &record;
      entry.sweep = runs::sweep_name(record);
      const bool has_no_engine = options.engine.empty() && record.engine.empty();
      RunJobOrReason run =
          job_of(record, has_no_engine ? options.default_engine : options.engine, cluster ? &*cluster : nullptr);
      if (!run.run) {
        entry.reason = run.reason;
        entries.push_back(std::move(entry));
        continue;
      }
      auto& job = jobs[job_key(run.run->job, record)];
      if (!job) job = std::make_shared<spec::Job>(std::move(run.run->job));
      entry.job = job;
      entry.layout = run.run->layout;
      entry.key = job->engine.name + " " + job->cluster.gpu.family;
      const layout::Legality legality = layout::legality(entry.layout, *job);
      entry.priced = legality.legal;
      entry.reason = legality.legal ? score_reason(record) : legality.reason;
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

Observation observation_of(const Entry& entry, const std::string& group) {
  const runs::RunRecord& r = *entry.record;
  Observation run;
  run.job = entry.job;
  run.layout = entry.layout;
  run.group = group;
  const bool ok = r.status == runs::RunStatus::kOk;
  if (ok) run.seconds = runs::step_seconds(r).value_or(0);
  if (ok && r.peak_memory_GiB) run.memory_bytes = *r.peak_memory_GiB * base::kGib;
  run.memory_kind = memory_kind_of(r);
  run.memory_rank = memory_rank_of(r);
  run.judged = ok || r.status == runs::RunStatus::kOom;
  run.ran_out_of_memory = r.status == runs::RunStatus::kOom;
  return run;
}

bool learns_from(const Entry& entry) { return entry.priced && entry.reason.empty(); }

std::string group_of(const Entry& entry, LeaveOut leave_out) {
  return leave_out == LeaveOut::kModel ? entry.record->model : entry.sweep;
}

Fit fit_of(const spec::Calibration& calibration) {
  return {calibration.coefficients(), calibration.memory_relative_sigma};
}

std::optional<spec::Calibration> shipped_without(const std::vector<size_t>& members, const std::vector<Entry>& entries,
                                                 LeaveOut leave_out) {
  const spec::Job& job = *entries[members.front()].job;
  spec::Calibration shipped = spec::default_calibration(job.engine, job.cluster);
  if (!shipped.is_fitted()) return std::nullopt;
  std::set<const spec::Job*> looked_at;
  for (const size_t i : members) {
    if (looked_at.insert(entries[i].job.get()).second && has_seen(shipped, entries[i], leave_out)) return std::nullopt;
  }
  return shipped;
}

}  // namespace layline::calibrate
