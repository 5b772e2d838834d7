// Runs that never ran: priced by the model itself with known coefficients.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "layline/calibrate/fit.h"
#include "layline/calibrate/predict.h"
#include "layline/cost/step.h"
#include "layline/layout/legality.h"
#include "layline/runs/run_record.h"
#include "tests/support/jobs.h"

namespace layline::calibrate::test {

// Every legal product of a few axes.
inline std::vector<layout::Layout> layouts_for(const spec::Job& job) {
  std::vector<layout::Layout> layouts;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4}) {
      for (const int mb : {1, 2, 4}) {
        for (const bool full : {false, true}) {
          layout::Layout layout;
          layout.tp = tp;
          layout.pp = pp;
          layout.mb = mb;
          layout.dp = job.num_gpus / tp / pp;
          layout.split = job.engine.default_split;
          if (full) layout.checkpointing = layout::Checkpointing::kFull;
          if (layout::is_legal(layout, job)) layouts.push_back(layout);
        }
      }
    }
  }
  return layouts;
}

// A job that no shipped calibration was fitted to.
inline layline::test::JobText job_text(int64_t num_gpus = 64) {
  return {.engine = "layline", .num_gpus = num_gpus, .global_batch = 512};
}

inline std::shared_ptr<const spec::Job> shared_job(const layline::test::JobText& text) {
  return std::make_shared<const spec::Job>(layline::test::make_job(text));
}

// Times of all layouts of a job under `truth`.
inline std::vector<Observation> timed_runs(const std::shared_ptr<const spec::Job>& job,
                                           const spec::Coefficients& truth) {
  cost::Pricer pricer(job, truth);
  std::vector<Observation> runs;
  for (const layout::Layout& layout : layouts_for(*job)) {
    Observation run;
    run.job = job;
    run.layout = layout;
    run.seconds = pricer.price(layout).step_seconds;
    runs.push_back(std::move(run));
  }
  return runs;
}

// Allocated bytes of the first rank, or only whether the layout fits.
inline std::vector<Observation> remembered_runs(const std::shared_ptr<const spec::Job>& job,
                                                const spec::Coefficients& truth, bool verdicts_only) {
  cost::Pricer pricer(job, truth);
  std::vector<Observation> runs;
  for (const layout::Layout& layout : layouts_for(*job)) {
    Observation run;
    run.job = job;
    run.layout = layout;
    run.memory_rank = MemoryRank::kFirst;
    if (verdicts_only) {
      run.judged = true;
      run.ran_out_of_memory = !pricer.price(layout).fits;
    } else {
      run.memory_bytes = memory_of(pricer.stages(layout), run.memory_rank, run.memory_kind);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

inline void append(std::vector<Observation>& runs, const std::vector<Observation>& more) {
  runs.insert(runs.end(), more.begin(), more.end());
}

// The record of an ok run of a Llama with SwiGLU, as a file would have it.
inline runs::RunRecord record_of(const spec::Job& job, const layout::Layout& layout, const std::string& sweep) {
  runs::RunRecord record;
  record.hardware = job.cluster.gpu.name;
  record.gpus_total = job.num_gpus;
  record.model = job.model.name;
  record.layers = job.model.num_layers;
  record.hidden = job.model.hidden;
  record.heads = job.model.num_heads;
  record.kv_heads = job.model.num_kv_heads;
  record.ffn_hidden = job.model.ffn_hidden;
  record.vocab = job.model.vocab;
  record.seq_len = job.sequence_length;
  record.global_batch_sequences = job.global_batch;
  record.micro_batch_size = layout.mb;
  record.tp = layout.tp;
  record.pp = layout.pp;
  record.dp = layout.dp;
  record.recompute = spec::name_of(layout.checkpointing);
  record.precision = "bf16";
  record.status = runs::RunStatus::kOk;
  record.engine = job.engine.name;
  record.mlp = "swiglu";
  record.notes = "sweep=" + sweep;
  return record;
}

}  // namespace layline::calibrate::test
