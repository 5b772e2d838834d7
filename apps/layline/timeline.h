// The pipeline of an explained layout on a clock.
#pragma once

#include "layline/schedule/simulate.h"
#include "layline/search/explain.h"
#include "layline/spec/job.h"

namespace layline::app {

// Runs the schedule's instruction lists with the predicted times of the stages, for at most `max_micro_batches`
// micro-batches of a step (more look the same). With virtual stages each chunk takes an equal part of its rank's time.
schedule::Timeline timeline_of(const spec::Job& job, const search::Explanation& explanation, int64_t max_micro_batches);

}  // namespace layline::app
