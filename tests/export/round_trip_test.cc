// What is exported comes back as the same layout of the same job.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "layline/base/error.h"
#include "layline/export/stage_layers.h"
#include "layline/layout/layout_text.h"
#include "tests/export/draws.h"

namespace layline::exporting {
namespace {

constexpr int kLayoutsOfACase = 40;  // with 100 cases a property
constexpr int kWantedRoundTrips = 1000;

std::string text_of(const spec::Job& job, const Layout& layout) {
  return layout::to_text(layout, layout::text_defaults(job.engine));
}

class RoundTrip : public testing::TestWithParam<Framework> {};

// A refusal is one line that begins with the framework and has a reason.
void check_refusal(Framework framework, const std::string& message) {
  RC_ASSERT(message.starts_with(std::string(title_of(framework)) + ": "));
  RC_ASSERT(message.find('\n') == std::string::npos);
  RC_ASSERT(message.size() > title_of(framework).size() + 10);
}

void check_same(const spec::Job& job, const Layout& layout, const Imported& imported) {
  RC_LOG() << text_of(job, layout) << " came back as " << text_of(job, imported.layout) << "\n";
  RC_ASSERT(text_of(job, imported.layout) == text_of(job, canonical(job, layout)));
  RC_ASSERT(imported.layout == canonical(job, layout));
  RC_ASSERT(imported.num_gpus == job.num_gpus);
  RC_ASSERT(imported.global_batch == job.global_batch);
  RC_ASSERT(imported.sequence_length == job.sequence_length);
  RC_ASSERT(imported.precision == job.precision);
  RC_ASSERT(imported.model.num_parameters() == job.model.num_parameters());
  RC_ASSERT(imported.model.num_kv_heads == job.model.num_kv_heads);
  RC_ASSERT(imported.is_known_model);
}

TEST_P(RoundTrip, GivesTheSameLayout) {
  const Framework framework = GetParam();
  const spec::Engine engine = engine_for(framework);
  int num_same = 0;
  EXPECT_TRUE(rc::check([&] {
    const spec::Job job = any_job(engine);
    ExportOptions options;
    options.launcher = *rc::gen::inRange(0, 2) == 0 ? Launcher::kSlurm : Launcher::kTorchrun;
    for (int i = 0; i < kLayoutsOfACase; ++i) {
      const Layout layout = any_legal_layout(job);
      if (!layout::is_legal(layout, job)) continue;
      RC_LOG() << job.model.name << ", " << job.num_gpus << " GPUs, batch " << job.global_batch << ": "
               << text_of(job, layout) << "\n";
      LaunchFiles files;
      try {
        files = launch_files(job, layout, framework, options);
      } catch (const base::InputError& error) {
        check_refusal(framework, error.what());
        continue;
      }
      check_same(job, layout, import_files(files, framework));
      ++num_same;
    }
  }));
  EXPECT_GE(num_same, kWantedRoundTrips);
}

// Whatever an engine can do that the framework cannot is refused, never written as something else.
TEST_P(RoundTrip, RefusesWhatItCannotSay) {
  const Framework framework = GetParam();
  spec::Engine able = engine_for(framework);
  able.zero_stages = {0, 1, 2, 3};
  able.has_context_parallel = able.has_virtual_stages = able.has_hybrid_sharding = able.has_partial_checkpointing =
      true;
  able.has_tensor_parallel = able.has_sequence_parallel = able.has_pipeline_parallel = true;
  able.sequence_parallel_always = false;
  able.schedules = {layout::ScheduleKind::kOneFOneB, layout::ScheduleKind::kGpipe, layout::ScheduleKind::kZeroBubble,
                    layout::ScheduleKind::kInterleaved};
  able.checkpointing = {layout::Checkpointing::kNone, layout::Checkpointing::kSelective, layout::Checkpointing::kFull};
  able.attention_kernels = {layout::AttentionKernel::kFlash2, layout::AttentionKernel::kFlash1,
                            layout::AttentionKernel::kFusedSoftmax, layout::AttentionKernel::kUnfused};
  able.norm_kernels = {layout::NormKernel::kFused, layout::NormKernel::kUnfused};
  able.splits = {layout::SplitKind::kEven, layout::SplitKind::kUniform, layout::SplitKind::kExplicit};
  able.precisions = {spec::Precision::kBf16, spec::Precision::kFp16, spec::Precision::kFp8};
  int num_refused = 0;
  EXPECT_TRUE(rc::check([&] {
    const spec::Job job = any_job(able);
    for (int i = 0; i < kLayoutsOfACase / 4; ++i) {
      const Layout layout = any_legal_layout(job);
      if (!layout::is_legal(layout, job)) continue;
      RC_LOG() << job.model.name << ", " << job.num_gpus << " GPUs: " << text_of(job, layout) << "\n";
      try {
        check_same(job, layout, import_files(launch_files(job, layout, framework, {}), framework));
      } catch (const base::InputError& error) {
        check_refusal(framework, error.what());
        ++num_refused;
      }
    }
  }));
  EXPECT_GT(num_refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, RoundTrip,
                         testing::Values(Framework::kMegatron, Framework::kNemo, Framework::kTorchtitan,
                                         Framework::kNanotron, Framework::kDeepspeed, Framework::kLayline),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace layline::exporting
