#include "layline/export/launch_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/export/stage_layers.h"
#include "layline/export/writers.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"

namespace layline::exporting {
namespace {

using layout::Layout;

std::string headline(const spec::Job& job, const Layout& layout) {
  return in_one_line(fmt::format("{}, {}, {} x {}, {} sequences of {} tokens a step, {}", job.model.title,
                                 layout::to_text(layout, layout::text_defaults(job.engine)), job.num_gpus,
                                 job.cluster.gpu.title, job.global_batch, job.sequence_length,
                                 spec::name_of(job.precision)));
}

LaunchFiles write(Framework framework, const Plan& plan) {
  switch (framework) {
    case Framework::kMegatron:
      return write_megatron(plan);
    case Framework::kNemo:
      return write_nemo(plan);
    case Framework::kTorchtitan:
      return write_torchtitan(plan);
    case Framework::kNanotron:
      return write_nanotron(plan);
    case Framework::kDeepspeed:
      return write_deepspeed(plan);
    case Framework::kLayline:
      break;
  }
  return write_layline(plan);
}

}  // namespace

std::string in_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

bool Plan::is_even() const { return std::equal(stage_layers.begin() + 1, stage_layers.end(), stage_layers.begin()); }

void want_tp_divides_kv_heads(Framework framework, const Plan& plan) {
  const int64_t tp = plan.layout.tp, heads = plan.model().num_kv_heads;
  if (heads % tp != 0) {
    refuse(framework, fmt::format("tp{}", tp),
           fmt::format("it does not divide {} key-value heads, and they are not replicated", heads));
  }
}

void want_fused_norm(Framework framework, const Plan& plan, std::string_view why) {
  if (plan.layout.norm != layout::NormKernel::kFused) refuse(framework, "norm=unfused", why);
}

void want_zero_up_to(Framework framework, const Plan& plan, int stage, std::string_view why) {
  const Layout& layout = plan.layout;
  if (layout.hsdp > 0) refuse(framework, fmt::format("hsdp{}", layout.hsdp), why);
  if (layout.zero > stage) refuse(framework, fmt::format("zero{}", layout.zero), why);
}

LaunchFiles launch_files(const spec::Job& job, const Layout& layout, Framework framework,
                         const ExportOptions& options) {
  const layout::Legality legality = layout::legality(layout, job);
  if (!legality.legal) throw base::InputError("layout", fmt::format("illegal: {}", legality.reason));
  const Layout named = canonical(job, layout);
  const Plan plan = {
      job, named, options, stage_layers(job, named), layout::num_micro_batches(named, job), headline(job, layout)};
  return write(framework, plan);
}

}  // namespace layline::exporting
