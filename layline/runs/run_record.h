// Run records: one training run a row, with the layout that was run and what came of it. The columns are those of
// data/published/README.md; an empty field means "not stated".
//
//   RunTable table = read_runs("runs.csv");
//   for (const RunRecord& run : table.records) if (auto seconds = step_seconds(run)) …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace layline::runs {

// kUnavailable: the engine has no kernel for the shape; kFail: a crash, or one that may have been out of memory.
enum class RunStatus { kOk, kOom, kFail, kUnavailable, kTimeout };
std::string_view name_of(RunStatus status);  // "ok", "oom", "fail", "unavailable", "timeout"

// Members are named as their columns. Text columns are "" and others nullopt where the record does not say.
struct RunRecord {
  std::string source, source_location;
  std::string hardware;
  std::optional<int64_t> gpus_total, gpus_per_node;
  std::string interconnect;
  std::string model;
  std::optional<int64_t> layers, hidden, heads, kv_heads, ffn_hidden, vocab;
  std::optional<int64_t> seq_len;                 // tokens
  std::optional<int64_t> global_batch_sequences;  // sequences a step
  std::optional<int64_t> micro_batch_size;
  std::optional<int64_t> tp;
  std::optional<bool> sp;
  std::optional<int64_t> pp, vpp, cp, ep, dp, zero_stage;
  std::string recompute;  // "none", "selective", "full"
  std::string attention_kernel, norm_kernel, precision;
  std::optional<double> step_time_s;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> tflops_per_gpu;
  std::optional<double> mfu;  // as published; conventions differ
  std::optional<double> peak_memory_GiB;
  std::optional<RunStatus> status;
  std::string engine;
  std::string mlp;  // "swiglu", "gelu", "squared-relu"
  std::optional<bool> tie_embeddings;
  std::string memory_rank;  // "first", "last", "max"
  std::string memory_kind;  // "allocated", "reserved", "nvidia-smi"
  std::optional<bool> scored;
  std::string notes;

  int64_t line = 0;                 // of the file, from 1; 0 for a record that was not read
  std::vector<std::string> fields;  // as read, in the order of RunTable::columns
};

struct RunTable {
  std::string file;
  std::vector<std::string> columns;  // as in the file, without prediction columns
  std::vector<RunRecord> records;
};

// All columns, in the published order.
const std::vector<std::string>& run_columns();

// Columns that `layline validate --predictions` appends. Reading skips them, so its output can be its input.
const std::vector<std::string>& prediction_columns();

// Throws base::InputError with file, line and column: malformed CSV, unknown or missing columns, values that are no
// number, out of range or not among those allowed.
RunTable read_runs(const std::string& path);
RunTable parse_runs(std::string_view text, const std::string& file);

// The record's fields in the order of run_columns(), from its typed members.
std::vector<std::string> to_fields(const RunRecord& record);

// Replaces the file as a whole (base::write_file_atomically), with the columns of run_columns().
void write_runs(const std::string& path, const std::vector<RunRecord>& records);

// gpus_total, else tp·pp·cp·dp (cp 1 if not stated).
std::optional<int64_t> num_gpus(const RunRecord& record);

// Seconds of one optimizer step: step_time_s, else global batch × sequence / (tokens_per_s_per_gpu × GPUs).
std::optional<double> step_seconds(const RunRecord& record);

// What follows `key=` where a part of the notes ("a=1; b=2") begins with it; "" when none does.
std::string note(const RunRecord& record, std::string_view key);

// The `sweep=` note, else model × GPUs × sequence length × global batch: "Llama-13B, 64 GPUs, seq 2048, batch 512".
std::string sweep_name(const RunRecord& record);

}  // namespace layline::runs
