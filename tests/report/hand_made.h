// Small tables of runs whose answers are known by looking at them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "layline/calibrate/validate.h"
#include "layline/report/jobs.h"
#include "layline/runs/run_record.h"

namespace layline::test {

// A run of a Llama on A100 80 GB GPUs; empty texts are empty fields.
struct Run {
  std::string model = "Llama-13B";
  std::string gpus = "64";
  std::string mb = "1", tp = "1", pp = "1", sp = "0";
  std::string recompute = "none", attention = "flash_attention2", norm = "fused";
  std::string seconds = "", tokens_per_s = "", tflops = "", mfu = "", memory_gib = "";
  std::string status = "ok";
  std::string engine = "aleph-scaling";
  std::string hardware = "A100-80GB SXM";
  std::string notes = "", source = "a test", scored = "1";
};

inline std::string quoted(const std::string& text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

inline std::string csv_of(const std::vector<Run>& runs) {
  std::string csv =
      "source,hardware,gpus_total,gpus_per_node,interconnect,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_"
      "len,"
      "global_batch_sequences,micro_batch_size,tp,sp,pp,zero_stage,recompute,attention_kernel,norm_kernel,precision,"
      "step_time_s,tokens_per_s_per_gpu,tflops_per_gpu,mfu,peak_memory_GiB,status,engine,mlp,tie_embeddings,scored,"
      "notes\n";
  for (const Run& r : runs) {
    csv += fmt::format(
        "{},{},{},8,NVLink intra-node; InfiniBand inter-node,{},40,5120,40,40,13824,128000,2048,2048,{},{},"
        "{},{},1,{},{},{},bf16,{},{},{},{},{},{},{},swiglu,0,{},{}\n",
        quoted(r.source), r.hardware, r.gpus, quoted(r.model), r.mb, r.tp, r.sp, r.pp, r.recompute, r.attention, r.norm,
        r.seconds, r.tokens_per_s, r.tflops, r.mfu, r.memory_gib, r.status, r.engine, r.scored, quoted(r.notes));
  }
  return csv;
}

// Predicted runs with what they point into.
struct Predicted {
  std::vector<runs::RunTable> tables;
  calibrate::Validation validation;
  std::vector<report::ReportRun> runs;
  report::RunList list() const { return report::all_of(runs); }
};

inline Predicted predicted(const std::vector<Run>& runs) {
  Predicted all;
  all.tables = {runs::parse_runs(csv_of(runs), "runs.csv")};
  all.validation = calibrate::validate(all.tables, {});
  all.runs = report::report_runs(all.validation);
  return all;
}

// Runs with all that a report can show: kernels, checkpointing, pipelines, sequence parallelism, out of memory, two
// jobs.
inline std::vector<Run> varied_runs() {
  return {
      {.mb = "1", .tp = "1", .pp = "1", .seconds = "26.5"},
      {.mb = "1", .tp = "2", .pp = "1", .seconds = "29.0"},
      {.mb = "1", .tp = "2", .pp = "1", .sp = "1", .seconds = "28.0"},
      {.mb = "2", .tp = "2", .pp = "1", .seconds = "31.0"},
      {.mb = "1", .tp = "1", .pp = "2", .seconds = "28.5", .memory_gib = "55"},
      {.mb = "2", .tp = "2", .pp = "2", .seconds = "32.0", .memory_gib = "50"},
      {.mb = "1", .tp = "2", .pp = "2", .norm = "unfused", .seconds = "35.0"},
      {.mb = "1", .tp = "2", .pp = "2", .recompute = "full", .norm = "unfused", .seconds = "41.0"},
      {.mb = "1", .tp = "2", .pp = "2", .attention = "unfused", .norm = "unfused", .seconds = "45.0"},
      {.mb = "8", .tp = "1", .pp = "1", .status = "oom"},
      {.mb = "8", .tp = "4", .pp = "1", .status = "oom"},
      {.model = "Other", .gpus = "128", .mb = "1", .tp = "2", .pp = "2", .seconds = "15.0"},
      {.model = "Other", .gpus = "128", .mb = "2", .tp = "2", .pp = "2", .seconds = "16.0"},
      {.model = "Other", .gpus = "128", .mb = "4", .tp = "2", .pp = "2", .status = "fail"},
  };
}

}  // namespace layline::test
