// Random pipelines for the tests of this folder.
#pragma once

#include <rapidcheck.h>

#include <utility>

#include "layline/schedule/simulate.h"

namespace layline::schedule {

inline std::pair<ScheduleKind, PipelineShape> any_shape() {
  const auto kind = static_cast<ScheduleKind>(*rc::gen::inRange(0, 4));
  PipelineShape shape;
  shape.pp = *rc::gen::inRange<int64_t>(1, 9);
  if (kind == ScheduleKind::kInterleaved && shape.pp > 1) shape.vp = *rc::gen::inRange<int64_t>(1, 5);
  shape.micro_batches = *rc::gen::inRange<int64_t>(1, 30);
  return {kind, shape};
}

inline double any_seconds() { return *rc::gen::inRange(0, 1000) / 97.0; }

inline StageTime any_time() {
  StageTime time{any_seconds(), any_seconds(), 0};
  time.weight = time.backward * *rc::gen::inRange(0, 101) / 100.0;
  return time;
}

inline StageTimes any_times(int64_t num_virtual_stages) {
  StageTimes times;
  for (int64_t i = 0; i < num_virtual_stages; ++i) times.push_back(any_time());
  return times;
}

}  // namespace layline::schedule
