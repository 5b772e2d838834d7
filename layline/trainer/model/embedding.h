// Vocab-parallel token embedding: each tensor-parallel rank holds some rows of the table.
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/trainer/model/context.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// The columns (of the head) or rows (of the embedding) of the vocabulary that a rank holds.
struct VocabularyPart {
  int64_t first = 0;
  int64_t size = 0;       // with padding
  int64_t num_valid = 0;  // without; the first ones
};

// Of a vocabulary padded to a multiple of tp.
VocabularyPart vocabulary_part(int64_t vocab, int64_t tp_size, int64_t tp_rank);

// tokens_SB int64 below the vocabulary → [S or S/tp, B, H].
at::Tensor embed(const at::Tensor& tokens_SB, const ParameterGroup& table, const VocabularyPart& part,
                 Context& context);

}  // namespace layline::trainer::model
