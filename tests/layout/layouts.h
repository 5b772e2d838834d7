// Random layouts and small jobs for the tests of this folder.
#pragma once

#include <rapidcheck.h>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::layout {

// Any layout that a text can say, legal for a job or not.
inline Layout any_layout() {
  const auto axis = [] { return *rc::gen::inRange<int64_t>(1, 30); };
  Layout layout;
  layout.dp = axis();
  layout.tp = axis();
  layout.pp = axis();
  layout.cp = axis();
  layout.ep = *rc::gen::inRange<int64_t>(1, 3);
  layout.vp = *rc::gen::inRange<int64_t>(1, 4);
  layout.mb = axis();
  layout.sp = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.zero = *rc::gen::inRange(0, 4);
  if (layout.zero == 3) layout.hsdp = *rc::gen::inRange<int64_t>(0, 3) * 8;
  layout.checkpointing = static_cast<Checkpointing>(*rc::gen::inRange(0, 3));
  if (layout.checkpointing == Checkpointing::kFull) layout.full_layers = *rc::gen::inRange<int64_t>(0, 5);
  layout.schedule = static_cast<ScheduleKind>(*rc::gen::inRange(0, 4));
  layout.split = static_cast<SplitKind>(*rc::gen::inRange(0, 4));
  if (layout.split == SplitKind::kExplicit) {
    const auto count = *rc::gen::inRange<size_t>(1, 6);
    layout.explicit_split = *rc::gen::container<std::vector<int64_t>>(count, rc::gen::inRange<int64_t>(1, 50));
  }
  layout.attention = static_cast<AttentionKernel>(*rc::gen::inRange(0, 4));
  layout.norm = static_cast<NormKernel>(*rc::gen::inRange(0, 2));
  return layout;
}

// An engine that has everything.
inline spec::Engine able_engine() {
  spec::Engine engine;
  engine.name = "able";
  engine.zero_stages = {0, 1, 2, 3};
  engine.has_context_parallel = engine.has_virtual_stages = engine.has_hybrid_sharding = true;
  engine.has_partial_checkpointing = true;
  engine.schedules = {ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved, ScheduleKind::kGpipe,
                      ScheduleKind::kZeroBubble};
  engine.checkpointing = {Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull};
  engine.attention_kernels = {AttentionKernel::kFlash2, AttentionKernel::kFlash1, AttentionKernel::kFusedSoftmax,
                              AttentionKernel::kUnfused};
  engine.norm_kernels = {NormKernel::kFused, NormKernel::kUnfused};
  engine.splits = {SplitKind::kEven, SplitKind::kUniform, SplitKind::kBalanced, SplitKind::kExplicit};
  return engine;
}

// A Llama-13B-like job on 64 GPUs: 40 layers, 40 heads of which 8 key-value heads.
inline spec::Job small_job() {
  spec::Job job;
  job.model.name = "test";
  job.model.num_layers = 40;
  job.model.hidden = 5120;
  job.model.num_heads = 40;
  job.model.num_kv_heads = 8;
  job.model.head_size = 128;
  job.model.ffn_hidden = 13824;
  job.model.vocab = 32000;
  job.engine = able_engine();
  job.num_gpus = 64;
  job.global_batch = 2048;
  job.sequence_length = 2048;
  return job;
}

}  // namespace layline::layout
