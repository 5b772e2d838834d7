// Runs by what they trained: the groups that most charts are drawn for, and the best of each.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layline/report/report_run.h"

namespace layline::report {

using RunList = std::vector<const ReportRun*>;

struct JobGroup {
  std::string name;
  RunList runs;
};

// By model size, sequence length and GPUs; jobs that could not be read come last, by name.
std::vector<JobGroup> jobs_of(const RunList& runs);
RunList all_of(const std::vector<ReportRun>& runs);

// The runs for which `keep` holds.
RunList those(const RunList& runs, const std::function<bool(const ReportRun&)>& keep);

// The fastest run that ran and has a step time; by predicted time, the one that is predicted to fit and be fastest.
// nullptr when there is none.
const ReportRun* fastest(const RunList& runs);
const ReportRun* predicted_fastest(const RunList& runs);

// The runs by what `key` says of them.
template <typename Key>
auto by(const RunList& runs, Key&& key) {
  std::map<std::decay_t<decltype(key(*runs.front()))>, RunList> groups;
  for (const ReportRun* run : runs) groups[key(*run)].push_back(run);
  return groups;
}

// At most `most` names of jobs with something to show, those with the most runs first, in the order of jobs_of().
std::vector<std::string> largest_jobs(const std::vector<JobGroup>& jobs, size_t most);

// "tp2 pp2 mb1 sp": what tells apart the runs of one sweep.
std::string short_layout(const ReportRun& run);
std::string checkpointing_text(const ReportRun& run);  // "none", "selective", "full"

}  // namespace layline::report
