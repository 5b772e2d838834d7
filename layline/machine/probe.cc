#include "layline/machine/probe.h"

#include <algorithm>

namespace layline::machine {

constexpr int64_t kWide = 512;

spec::Model probe_model(int64_t hidden) {
  spec::Model model;
  model.name = "probe";
  model.title = "Probe";
  model.num_layers = hidden < kWide ? 6 : 2;
  model.hidden = hidden;
  model.head_size = 64;
  model.num_heads = hidden / model.head_size;
  model.num_kv_heads = std::max<int64_t>(1, model.num_heads / 2);
  model.ffn_hidden = 3 * hidden;
  model.vocab = 256;
  model.mlp = spec::Mlp::kSwiglu;
  model.norm = spec::Norm::kRmsNorm;
  model.position = spec::Position::kRope;
  return model;
}

}  // namespace layline::machine
