// The frameworks' writers. Private to this folder: launch_files() calls them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/export/launch_files.h"

namespace layline::exporting {

// What every writer starts from. The layout is canonical.
struct Plan {
  const spec::Job& job;
  const layout::Layout& layout;
  const ExportOptions& options;
  std::vector<int64_t> stage_layers;  // of each virtual stage
  int64_t num_micro_batches = 1;      // on each data-parallel replica
  std::string headline;               // "Llama 13B, dp32 tp2 pp1 mb1 sp, 64 × A100 80 GB, …"

  const spec::Model& model() const { return job.model; }
  bool is_even() const;  // all stages have as many layers
};

LaunchFiles write_megatron(const Plan& plan);
LaunchFiles write_nemo(const Plan& plan);
LaunchFiles write_torchtitan(const Plan& plan);
LaunchFiles write_nanotron(const Plan& plan);
LaunchFiles write_deepspeed(const Plan& plan);
LaunchFiles write_layline(const Plan& plan);

// Without control characters: a title of somebody's model file stays inside the comment that shows it.
std::string in_one_line(std::string text);

// Refusals that several frameworks share.
void want_tp_divides_kv_heads(Framework framework, const Plan& plan);
void want_fused_norm(Framework framework, const Plan& plan, std::string_view why);
void want_zero_up_to(Framework framework, const Plan& plan, int stage, std::string_view why);

}  // namespace layline::exporting
