// A model and a job that take milliseconds.
#pragma once

#include "layline/layout/stage_split.h"
#include "layline/spec/model.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop::test {

inline spec::Model tiny_model() {
  spec::Model model;
  model.name = "tiny";
  model.num_layers = 2;
  model.hidden = 32;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_size = 8;
  model.ffn_hidden = 48;
  model.vocab = 64;
  return model;
}

inline TrainingJob tiny_job(const layout::Layout& layout, int64_t global_batch) {
  TrainingJob job;
  job.model = tiny_model();
  job.layout = layout;
  job.stages = layout::stages_of(layout, job.model.num_layers, 0.5, 1.5);
  job.sequence_length = 16;
  job.global_batch = global_batch;
  job.steps = 100;
  return job;
}

}  // namespace layline::trainer::loop::test
