// Jobs and made-up runs of them.
#pragma once

#include <string>
#include <vector>

#include "layline/calibrate/run_job.h"
#include "layline/layout/layout_text.h"
#include "layline/runs/run_record.h"
#include "layline/spec/job.h"
#include "layline/spec/registry.h"
#include "layline/study/advice.h"
#include "layline/study/evidence.h"

namespace layline::study {

inline spec::Job job_of(const std::string& model, int64_t gpus, const std::string& cluster, const std::string& engine,
                        int64_t batch, int64_t length) {
  spec::Job job;
  job.model = spec::get_model(model);
  job.cluster = spec::get_cluster(cluster);
  job.engine = spec::get_engine(engine);
  job.calibration = spec::default_calibration(job.engine, job.cluster);
  job.num_gpus = gpus;
  job.global_batch = batch;
  job.sequence_length = length;
  spec::check_job(job);
  return job;
}

inline spec::Job paper_job() { return job_of("llama-13b", 64, "a100-80gb", "aleph-scaling", 2048, 2048); }

// A small one that has all axes to choose from.
inline spec::Job small_job() { return job_of("llama-1-7b", 8, "a100-80gb", "aleph-scaling", 64, 4096); }

inline layout::Layout layout_of(const std::string& text, const spec::Job& job) {
  return layout::parse_layout(text, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine)});
}

// seconds 0: out of memory.
inline runs::RunRecord run_of(const spec::Job& job, const layout::Layout& layout, double seconds) {
  runs::RunRecord record = calibrate::record_of(job, layout);
  record.source = "made up";
  record.status = seconds > 0 ? runs::RunStatus::kOk : runs::RunStatus::kOom;
  if (seconds > 0) record.step_time_s = seconds;
  return record;
}

inline runs::RunRecord run_of(const spec::Job& job, const std::string& text, double seconds) {
  return run_of(job, layout_of(text, job), seconds);
}

inline EvidenceSummary evidence_of(std::vector<runs::RunRecord> records) {
  runs::RunTable table;
  table.file = "made up";
  table.records = std::move(records);
  return evidence_from_runs({table}, {});
}

inline const Evidence& of_rule(const EvidenceSummary& summary, std::string_view id) {
  return summary.rules.at(static_cast<size_t>(&find_rule(id) - rules().data()));
}

inline const Outcome& of_rule(const Advice& advice, std::string_view id) {
  return advice.outcomes.at(static_cast<size_t>(&find_rule(id) - rules().data()));
}

}  // namespace layline::study
