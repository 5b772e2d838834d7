#include "layline/export/stage_layers.h"

#include <utility>

#include "layline/cost/step.h"
#include "layline/layout/stage_split.h"

namespace layline::exporting {
namespace {

using layout::Layout;
using layout::SplitKind;

std::vector<int64_t> layers_of(const Layout& layout, int64_t num_layers, memory::EndCosts ends) {
  std::vector<int64_t> layers;
  for (const layout::Stage& stage : layout::stages_of(layout, num_layers, ends.embedding_layers, ends.head_layers)) {
    layers.push_back(stage.num_layers);
  }
  return layers;
}

}  // namespace

std::vector<int64_t> stage_layers(const spec::Job& job, const Layout& layout) {
  const bool looks_at_ends = layout.split == SplitKind::kBalanced || layout.split == SplitKind::kThreshold;
  const memory::EndCosts ends = looks_at_ends ? cost::Pricer(job).end_costs(layout) : memory::EndCosts{};
  return layers_of(layout, job.model.num_layers, ends);
}

void set_stage_layers(const spec::Job& job, std::vector<int64_t> layers, Layout& layout) {
  layout.explicit_split.clear();
  for (const SplitKind kind : {job.engine.default_split, SplitKind::kEven}) {
    layout.split = kind;
    if (stage_layers(job, layout) == layers) return;
  }
  layout.split = SplitKind::kExplicit;
  layout.explicit_split = std::move(layers);
}

Layout canonical(const spec::Job& job, Layout layout) {
  if (layout.tp == 1) layout.sp = false;
  if (layout.hsdp == layout.dp) layout.hsdp = 0;
  set_stage_layers(job, stage_layers(job, layout), layout);
  return layout;
}

}  // namespace layline::exporting
