// The parts of a layer, of the model's ends and of a step, on a measured machine (docs/model.md, D2 to D5). The lists
// of products, kernels and collectives are those of layline/trainer/model and layline/trainer/optimizer.
#pragma once

#include "layline/cost/layer.h"
#include "layline/cost/measured.h"
#include "layline/layout/layout.h"

namespace layline::cost {

LayerCost measured_layer_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape);
EndCost measured_embedding_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape);
EndCost measured_head_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape);

// The reduction of the gradients and the gathering of the weights, bucket by bucket; nothing hides behind compute,
// since a CPU does both.
double measured_data_parallel_seconds(const spec::Job& job, const Measured& measured, const layout::Layout& layout,
                                      double parameters, double layers);
// Zeroing, norm and update.
double measured_optimizer_seconds(const Measured& measured, double parameters, double shard);

}  // namespace layline::cost
