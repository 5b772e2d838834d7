#include "tests/trainer/dryrun/random_trial.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/layout/stage_split.h"
#include "layline/spec/registry.h"

namespace layline::trainer::dryrun {

namespace {

constexpr int64_t kMaxRanks = 4096;
constexpr int64_t kMostQuickStages = 4, kMostQuickLayers = 13;

}  // namespace

std::string to_text(const Trial& trial) {
  const spec::Model& model = trial.job.model;
  return fmt::format("{} (L{} h{} n{} k{} d{} f{} V{}{}) S{} GB{} {} {}", model.name, model.num_layers, model.hidden,
                     model.num_heads, model.num_kv_heads, model.head_size, model.ffn_hidden, model.vocab,
                     model.tied_embeddings ? " tied" : "", trial.job.sequence_length, trial.job.global_batch,
                     spec::name_of(trial.job.precision),
                     layout::to_text(trial.layout, layout::text_defaults(trial.job.engine)));
}

loop::TrainingJob training_job(const Trial& trial) {
  loop::TrainingJob job;
  job.model = trial.job.model;
  job.layout = trial.layout;
  const memory::EndCosts ends = cost::Pricer(trial.job).end_costs(trial.layout);
  job.stages = layout::stages_of(trial.layout, job.model.num_layers, ends.embedding_layers, ends.head_layers);
  job.sequence_length = trial.job.sequence_length;
  job.global_batch = trial.job.global_batch;
  job.dtype = trial.job.precision == spec::Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  job.steps = 2;
  return job;
}

Trial TrialGenerator::next() {
  for (;;) {
    Trial trial = draw();
    if (trial.layout.world_size() > kMaxRanks) continue;
    if (scope_ == Scope::kQuick &&
        (trial.layout.pp > kMostQuickStages || trial.job.model.num_layers > kMostQuickLayers)) {
      continue;
    }
    if (layout::is_legal(trial.layout, trial.job)) return trial;
  }
}

spec::Model TrialGenerator::odd_model() {
  spec::Model model = spec::get_model("llama-tiny");
  model.name = "odd";
  model.num_layers = one_of<int64_t>({1, 2, 3, 5, 7, 12, 13, 24, 31});
  model.head_size = one_of<int64_t>({32, 64, 80, 96, 128, 256});
  model.num_heads = one_of<int64_t>({4, 6, 8, 12, 16, 24, 40, 64});
  model.num_kv_heads = model.num_heads;
  while (model.num_kv_heads % 2 == 0 && !one_in(3)) model.num_kv_heads /= 2;
  model.hidden = model.num_heads * model.head_size;
  if (one_in(4)) model.hidden = one_of<int64_t>({256, 1000, 2048, 3072, 6144});
  model.ffn_hidden = one_of<int64_t>({model.hidden, 2 * model.hidden, 8 * model.hidden / 3 / 64 * 64 + 64,
                                      4 * model.hidden, 7 * model.hidden / 2 / 16 * 16});
  model.vocab = one_of<int64_t>({257, 5000, 32000, 50257, 128256, 151936, 256000});
  model.tied_embeddings = one_in(2);
  return model;
}

spec::Model TrialGenerator::model() {
  if (one_in(3)) return odd_model();
  spec::Model model = spec::get_model(
      one_of<std::string>({"llama-tiny", "llama-3.2-1b", "llama-3.2-3b", "llama-2-7b", "llama-3-8b", "mistral-7b",
                           "llama-2-13b", "llama-30b", "llama-65b", "llama-2-70b", "llama-3.1-405b"}));
  // Fewer layers are run in less time.
  if (!one_in(5)) model.num_layers = one_of<int64_t>({1, 2, 4, 7, 8, 13, 16, 24, 33});
  return model;
}

void TrialGenerator::draw_axes(layout::Layout& layout) {
  layout.dp = one_of<int64_t>({1, 2, 3, 4, 6, 8, 32, 64, 256, 1024, 4096});
  layout.tp = one_of<int64_t>({1, 1, 2, 4, 8, 16});
  layout.pp = one_of<int64_t>({1, 1, 2, 3, 4, 8, 16});
  layout.mb = one_of<int64_t>({1, 1, 2, 3, 4});
  layout.sp = layout.tp > 1 && one_in(2);
  layout.zero = one_in(3) ? 0 : 1;
}

void TrialGenerator::draw_kernels(layout::Layout& layout) {
  using layout::Checkpointing;
  layout.checkpointing = one_of<Checkpointing>(
      {Checkpointing::kNone, Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull});
  if (layout.checkpointing == Checkpointing::kFull) layout.full_layers = one_of<int64_t>({0, 0, 1, 2, 5});
  layout.attention = one_in(4) ? layout::AttentionKernel::kUnfused : layout::AttentionKernel::kFlash2;
  layout.norm = one_in(4) ? layout::NormKernel::kUnfused : layout::NormKernel::kFused;
}

void TrialGenerator::draw_pipeline(layout::Layout& layout, int64_t num_layers) {
  using spec::ScheduleKind;
  if (layout.pp == 1 && !one_in(8)) return;
  layout.schedule = one_of<ScheduleKind>({ScheduleKind::kOneFOneB, ScheduleKind::kOneFOneB, ScheduleKind::kGpipe,
                                          ScheduleKind::kZeroBubble, ScheduleKind::kInterleaved});
  if (layout.schedule == ScheduleKind::kInterleaved) layout.vp = one_of<int64_t>({2, 2, 3, 4});
  layout.split = one_of<spec::SplitKind>({spec::SplitKind::kEven, spec::SplitKind::kEven, spec::SplitKind::kUniform,
                                          spec::SplitKind::kBalanced, spec::SplitKind::kExplicit});
  if (layout.split != spec::SplitKind::kExplicit) return;
  const int64_t num_stages = layout.num_virtual_stages();
  if (num_layers < num_stages) return;
  layout.explicit_split.assign(static_cast<size_t>(num_stages), 1);
  for (int64_t left = num_layers - num_stages; left > 0; --left) {
    ++layout.explicit_split[random_() % layout.explicit_split.size()];
  }
}

Trial TrialGenerator::draw() {
  Trial trial;
  layout::Layout& layout = trial.layout;
  spec::Job& job = trial.job;
  job.model = model();
  job.engine = spec::get_engine("layline");
  draw_axes(layout);
  draw_kernels(layout);
  draw_pipeline(layout, job.model.num_layers);
  job.num_gpus = layout.world_size();
  job.cluster = spec::get_cluster("cpu");
  job.cluster.gpus_per_node = static_cast<int>(job.num_gpus);
  const int64_t pp = layout.pp;
  const int64_t micro_batches =
      layout.vp > 1 ? one_of<int64_t>({1, 1, 2, 3}) * pp : one_of<int64_t>({1, 2, 3, 4, pp, pp + 1, pp + 3});
  job.global_batch = layout.dp * layout.mb * micro_batches;
  job.sequence_length = one_of<int64_t>({128, 512, 2048, 4096, 8192, 32768});
  job.precision = one_in(4) ? spec::Precision::kFp32 : spec::Precision::kBf16;
  return trial;
}

}  // namespace layline::trainer::dryrun
