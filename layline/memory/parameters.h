// Parameters that one rank holds, from the model's sizes and the layout's axes (docs/model.md, M1 and M2).
#pragma once

#include "layline/layout/layout.h"
#include "layline/memory/stage_groups.h"
#include "layline/spec/model.h"

namespace layline::memory {

// Vocabulary padded to a multiple of tp (each rank holds the same number of rows).
double padded_vocab(const spec::Model& model, int64_t tp);

// Width of the keys that one rank holds: k·d / tp, or d when tp exceeds the KV heads (they are replicated then).
double kv_width_per_rank(const spec::Model& model, int64_t tp);

// Parameters of one layer on one tp rank: matrices are divided by tp, norms and row-parallel biases are not (M1).
double layer_parameters_per_rank(const spec::Model& model, int64_t tp);

// Embedding table (and learned positions) and head with final norm on one tp rank.
double embedding_parameters_per_rank(const spec::Model& model, int64_t tp);
double head_parameters_per_rank(const spec::Model& model, int64_t tp);

// All parameters of a stage on one rank (M2). A tied head on another stage than the embedding is a second copy.
double stage_parameters(const spec::Model& model, int64_t tp, const StageGroup& group);

}  // namespace layline::memory
