// The layouts that a rule is judged by. Private to this folder.
#pragma once

#include "layline/study/outcome.h"

namespace layline::study {

// Sets `follows` and `other` of a comparison: the fastest of each side, with other splits and partial checkpointing as
// plans have them; where none fits the nearest miss; none where no layout is legal.
void find_sides(const Rule& rule, const Judged& judged, Outcome& outcome);

// The same of a prescription: its first choice that fits, and the best of all.
void find_prescribed(const Rule& rule, const Judged& judged, Outcome& outcome);

// Sets `measured`, where runs of the job were on both sides, with the same kernels but for what the rule speaks of.
void find_measured(const Rule& rule, const Judged& judged, Outcome& outcome);

}  // namespace layline::study
