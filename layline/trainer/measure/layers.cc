#include "layline/trainer/measure/layers.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <numeric>

#include "layline/machine/probe.h"
#include "layline/spec/measured_names.h"
#include "layline/trainer/measure/operands.h"
#include "layline/trainer/model/stage.h"
#include "layline/trainer/optimizer/flat_buffers.h"

namespace layline::trainer::measure {
namespace {

namespace m = spec::measured;

std::vector<int64_t> ranks_of_group(const comm::GroupFactory& factory, int64_t size) {
  std::vector<int64_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), factory.rank() / size * size);
  return ranks;
}

// A stage without ends, and the last forward pass through it.
struct Probe {
  Probe(int64_t hidden, int64_t tokens, at::ScalarType dtype, int64_t tp, bool sp, comm::GroupFactory& factory)
      : group(factory.make("probe", ranks_of_group(factory, tp))),
        spec(machine::probe_model(hidden)),
        stage(spec, {0, spec.num_layers, false, false}, {tp, group->rank(), sp, false}, {}),
        buffers({stage.groups()}, 1, at::TensorOptions().dtype(dtype)) {
    for (model::ParameterGroup* weights : stage.groups()) Operands::fill(weights->value);
    context.tp = group.get();
    context.sequence_parallel = sp;
    context.head_size = spec.head_size;
    context.rope = kernels::make_rope_table(machine::kProbeSequence, spec.head_size, {}, dtype);
    const int64_t own_sequence = machine::kProbeSequence / (sp ? tp : 1);
    input = at::randn({own_sequence, tokens / machine::kProbeSequence, hidden}, at::kFloat).to(dtype);
    gradient = at::randn_like(input) * 1e-3;
    input.requires_grad_(true);
  }

  void forward() {
    const at::AutoGradMode grad(true);
    model::Stage::Input stage_input;
    stage_input.hidden = input;
    recorded = model::Recorded(input, stage.forward(stage_input, context));
  }
  void backward() { recorded.backward(gradient); }

  std::unique_ptr<comm::Group> group;
  spec::Model spec;
  model::Stage stage;
  optimizer::FlatBuffers buffers;
  model::Context context;
  at::Tensor input, gradient;
  model::Recorded recorded;
};

}  // namespace

Operation make_layer(std::string_view what, at::ScalarType dtype, int64_t group_size, const std::vector<double>& sizes,
                     comm::GroupFactory& factory) {
  const bool is_sequence = what == m::kSequenceForward || what == m::kSequenceBackward;
  const bool is_forward = what == m::kLayerForward || what == m::kSplitForward || what == m::kSequenceForward;
  const bool is_backward = what == m::kLayerBackward || what == m::kSplitBackward || what == m::kSequenceBackward;
  if (!is_forward && !is_backward) return {};
  const auto probe = std::make_shared<Probe>(static_cast<int64_t>(sizes[0]), static_cast<int64_t>(sizes[1]), dtype,
                                             group_size, is_sequence, factory);
  const double share = 1.0 / static_cast<double>(probe->spec.num_layers);
  if (is_forward) return {{}, [probe](int64_t) { probe->forward(); }, share};
  return {[probe](int64_t) { probe->forward(); }, [probe](int64_t) { probe->backward(); }, share};
}

}  // namespace layline::trainer::measure
