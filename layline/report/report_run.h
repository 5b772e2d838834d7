// A run record with all that a report shows of it: the record's own numbers, the model's prediction, and the MFU of
// both under one formula.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layline/calibrate/validate.h"
#include "layline/layout/layout.h"
#include "layline/runs/run_record.h"
#include "layline/spec/job.h"

namespace layline::report {

struct ReportRun {
  const runs::RunRecord* record = nullptr;
  std::string sweep;     // as `layline validate` names it
  std::string model;     // "Llama-13B"
  std::string job_name;  // "Llama-13B, 2k, 64 GPUs": model, tokens of a sequence, GPUs, and what else tells jobs apart
  std::string kernel;    // "FlashAttention 2 + fused norm"
  std::string layout_text;
  int64_t num_gpus = 0;

  // Known when the record could be read as a job; the job has no calibration.
  std::shared_ptr<const spec::Job> job;
  layout::Layout layout;

  bool is_ok = false;                  // it ran
  bool is_oom = false;                 // it ran out of memory
  std::optional<double> seconds;       // of a step, of runs that ran
  bool seconds_are_derived = false;    // from the FLOPs that the source published, see report_run.cc
  std::optional<double> mfu;           // PaLM's formula, from `seconds`; not as published
  std::optional<double> memory_bytes;  // measured peak

  std::optional<calibrate::Prediction> prediction;
  std::optional<double> predicted_mfu;
  std::string why_not_predicted;  // when there is no prediction

  std::optional<double> relative_error() const;  // predicted / measured - 1
  std::string status() const;                    // "ok", "oom", "fail", … or "not stated"
};

// One a validated run, in the same order. The records outlive them. `engine` and `cluster` as in ValidateOptions.
std::vector<ReportRun> report_runs(const calibrate::Validation& validation, const std::string& engine = "",
                                   const std::string& cluster = "");

// Why MFU and published MFU differ: how many runs had another number published, and by how much. Empty when none had.
std::string mfu_conventions_text(const std::vector<ReportRun>& runs);

// "2k" of 2,048 tokens, "3,000" of others.
std::string length_text(int64_t tokens);

}  // namespace layline::report
