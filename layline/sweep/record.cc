#include "layline/sweep/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/calibrate/run_job.h"

namespace layline::sweep {
namespace {

// FNV-1a, 64 bits.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

void put_measured(const Measurement& measured, const spec::Job& job, runs::RunRecord& record) {
  record.status = measured.status;
  if (measured.peak_memory_bytes > 0) {
    record.peak_memory_GiB = static_cast<double>(measured.peak_memory_bytes) / base::kGib;
    record.memory_rank = "max";
    record.memory_kind = "allocated";
  }
  if (measured.status != runs::RunStatus::kOk) return;
  record.step_time_s = measured.step_seconds;
  record.mfu = measured.mfu;
  if (measured.tokens_per_second) {
    record.tokens_per_s_per_gpu = *measured.tokens_per_second / static_cast<double>(job.num_gpus);
  }
}

std::string sweep_note(const Origin& origin, int64_t num_ranks) {
  return fmt::format("{}, {} ranks", origin.sweep, num_ranks);
}

// "attention 0.12, optimizer 0.05 | attention 0.11, ...": first stage first.
std::string seconds_text(const std::vector<std::map<std::string, double>>& stages) {
  std::vector<std::string> texts;
  for (const auto& stage : stages) {
    std::vector<std::string> parts;
    for (const auto& [name, seconds] : stage) {
      if (seconds > 0) parts.push_back(fmt::format("{} {:.4g}", name, seconds));
    }
    texts.push_back(fmt::format("{}", fmt::join(parts, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, " | "));
}

std::string notes_of(const PlannedRun& planned, const Measurement& measured, const Origin& origin) {
  std::vector<std::string> notes = {
      fmt::format("sweep={}", sweep_note(origin, planned.num_ranks)), fmt::format("layout={}", planned.text),
      fmt::format("memory_limit_bytes={:.0f}", planned.job->cluster.gpu.memory_bytes),
      fmt::format("steps={}", measured.num_steps), fmt::format("wall_seconds={:.2f}", measured.wall_seconds)};
  if (measured.spread) notes.push_back(fmt::format("spread={:.4f}", *measured.spread));
  if (measured.is_given_up && measured.fastest_step_seconds) {
    notes.push_back(fmt::format("slower_than_seconds={:.6g}", *measured.fastest_step_seconds));
  }
  if (!measured.peak_memory_bytes_by_stage.empty()) {
    notes.push_back(fmt::format("peak_memory_bytes_by_stage={}", fmt::join(measured.peak_memory_bytes_by_stage, ",")));
  }
  if (!measured.seconds_by_stage.empty()) {
    notes.push_back(fmt::format("seconds_by_stage={}", seconds_text(measured.seconds_by_stage)));
  }
  notes.push_back(fmt::format("machine={}", origin.machine));
  notes.push_back(fmt::format("run={}", origin.run));
  if (!measured.reason.empty()) notes.push_back(fmt::format("reason={}", measured.reason));
  return fmt::format("{}", fmt::join(notes, "; "));
}

}  // namespace

std::string fingerprint(const trainer::config::RunConfig& run) {
  trainer::config::RunConfig same = run;
  same.layout = "auto";
  same.metrics.clear();
  same.timeout_seconds = 0;
  same.stop_after_seconds.reset();
  return fmt::format("{:016x}", hash_of(trainer::config::to_json(same)));
}

runs::RunRecord record_of(const PlannedRun& planned, const Measurement& measured, const Origin& origin) {
  runs::RunRecord record = calibrate::record_of(*planned.job, planned.layout);
  record.source = "layline sweep";
  put_measured(measured, *planned.job, record);
  record.scored = true;
  record.notes = notes_of(planned, measured, origin);
  return record;
}

std::string key_of(const runs::RunRecord& record) {
  const std::string layout = runs::note(record, "layout");
  return layout.empty() ? "" : fmt::format("{} ranks, {}", record.gpus_total.value_or(0), layout);
}

void check_origin(const runs::RunRecord& record, const Origin& origin, const std::string& file) {
  const std::string where = record.line > 0 ? fmt::format("{}:{}", file, record.line) : file;
  const auto check = [&](const char* what, const std::string& found, const std::string& own) {
    if (found == own) return;
    throw base::InputError(where, fmt::format("holds a run of another {} ({}, not {}); write to another file", what,
                                              found.empty() ? "not said" : found, own));
  };
  check("sweep", runs::note(record, "sweep"), sweep_note(origin, record.gpus_total.value_or(0)));
  check("machine", runs::note(record, "machine"), origin.machine);
  check("run", runs::note(record, "run"), origin.run);
}

}  // namespace layline::sweep
