// A layout: how one training job is spread over its ranks. The same object is priced by the planner and executed by
// the trainer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/spec/types.h"

namespace layline::layout {

using spec::AttentionKernel;
using spec::Checkpointing;
using spec::NormKernel;
using spec::ScheduleKind;
using spec::SplitKind;

struct Layout {
  int64_t dp = 1;    // data-parallel replicas
  int64_t tp = 1;    // tensor parallel
  int64_t pp = 1;    // pipeline stages
  int64_t cp = 1;    // context parallel (sequence split in attention too)
  int64_t ep = 1;    // expert parallel; 1 for dense models
  int64_t vp = 1;    // virtual stages (chunks) a rank
  int64_t mb = 1;    // micro-batch, sequences
  bool sp = false;   // sequence parallelism over the tp ranks (Korthikanti et al. 2022)
  int zero = 1;      // ZeRO stage 0–3; 3 is FSDP
  int64_t hsdp = 0;  // > 0: ZeRO-3 inside groups of this many ranks, replicated between groups (zero is 3)
  Checkpointing checkpointing = Checkpointing::kNone;
  int64_t full_layers = 0;  // ckpt=full:K: only the first K layers of each (virtual) stage; 0: all
  ScheduleKind schedule = ScheduleKind::kOneFOneB;
  SplitKind split = SplitKind::kEven;
  std::vector<int64_t> explicit_split;  // layers of each virtual stage in order, when split is kExplicit
  AttentionKernel attention = AttentionKernel::kFlash2;
  NormKernel norm = NormKernel::kFused;

  int64_t world_size() const { return dp * tp * pp * cp; }
  int64_t num_virtual_stages() const { return pp * vp; }
  bool operator==(const Layout&) const = default;
};

}  // namespace layline::layout
