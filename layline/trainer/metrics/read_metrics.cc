#include "layline/trainer/metrics/read_metrics.h"

#include <map>
#include <utility>

#include "layline/trainer/metrics/follow_metrics.h"

namespace layline::trainer::metrics {

std::vector<StepRecord> read_metrics(const std::string& path) {
  std::map<int64_t, StepRecord> steps;
  MetricsFollower(path, [&](StepRecord record) {
    if (record.step == 1) steps.clear();  // another run begins
    steps[record.step] = std::move(record);
  }).poll();
  std::vector<StepRecord> records;
  for (auto& [step, record] : steps) records.push_back(std::move(record));
  return records;
}

}  // namespace layline::trainer::metrics
