#include "real_run.h"

#include <ATen/ATen.h>

#include "layline/layout/layout_text.h"
#include "layline/layout/rank_map.h"
#include "layline/trainer/comm/fake_group.h"
#include "layline/trainer/loop/memory_counter.h"

namespace layline::trainer::dryrun {

namespace {

std::vector<data::MicroBatch> micro_batches(const loop::TrainingJob& job) {
  std::vector<data::MicroBatch> batches;
  for (int64_t i = 0; i < job.num_micro_batches(); ++i) {
    data::MicroBatch batch{at::empty({job.layout.mb, job.sequence_length}, at::kLong),
                           at::empty({job.layout.mb, job.sequence_length}, at::kLong)};
    for (const at::Tensor& tensor : {batch.tokens_BS, batch.targets_BS}) {
      for (int64_t j = 0; j < tensor.numel(); ++j) tensor.data_ptr<int64_t>()[j] = (i + j * j) % job.model.vocab;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace

loop::TrainingJob job_of(const Sizes& sizes, const std::string& layout) {
  loop::TrainingJob job;
  job.model.name = job.model.title = "tiny";
  job.model.num_layers = sizes.num_layers;
  job.model.hidden = sizes.hidden;
  job.model.num_heads = 4;
  job.model.num_kv_heads = sizes.num_kv_heads;
  job.model.head_size = sizes.hidden / 4;
  job.model.ffn_hidden = sizes.hidden * 3 / 2;
  job.model.vocab = sizes.vocab;
  job.model.tied_embeddings = sizes.tied;
  job.layout = layout::parse_layout((layout.starts_with("dp") ? "" : "dp1 ") + layout, {});
  job.stages = layout::stages_of(job.layout, sizes.num_layers);
  job.sequence_length = sizes.sequence_length;
  job.global_batch = sizes.global_batch;
  job.dtype = sizes.dtype;
  job.steps = 2;
  return job;
}

int64_t real_peak_bytes(const loop::TrainingJob& job, int64_t stage) {
  loop::MemoryCounter& memory = loop::MemoryCounter::install();
  const int64_t before = memory.live_bytes();
  memory.reset_peak();
  const layout::RankMap map(job.layout);
  comm::FakeFactory factory(map.rank({.pp = stage}), job.layout.world_size());
  loop::RankTrainer trainer(job, factory);
  trainer.initialize();
  for (int i = 0; i < 2; ++i) trainer.step(micro_batches(job));
  return memory.peak_bytes() - before;
}

}  // namespace layline::trainer::dryrun
