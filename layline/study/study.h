// The rules at every job of a study, and where each stops being true.
//
//   Study study = run_study(read_study_spec("study.json"), nullptr);
//   for (const Boundary& b : study.boundaries) … "micro-batch-1 breaks from 4,096 GPUs on" …
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/base/progress.h"
#include "layline/study/advice.h"
#include "layline/study/study_spec.h"

namespace layline::study {

struct StudyJob {
  StudyPoint point;
  Advice advice;
  // Of the layouts that the study asks for, all that are legal; else the best and each rule's two sides, once each.
  std::vector<search::PricedLayout> layouts;
};

// A rule over all jobs.
struct RuleSummary {
  const Rule* rule = nullptr;
  int64_t num_holds = 0, num_no_difference = 0, num_breaks = 0, num_does_not_apply = 0;
  std::optional<double> median_gain;  // of the jobs where both sides fit
  std::optional<double> worst_gain, best_gain;
  size_t worst_job = 0, best_job = 0;  // in Study::jobs; where there are such gains
};

// Two jobs next to each other along one list of the study, all else equal, of which a rule is true at one only. Jobs
// that it does not apply to are passed over.
struct Boundary {
  const Rule* rule = nullptr;
  std::string_view along;        // the list: "gpus", "models", "clusters", …
  size_t before = 0, after = 0;  // in Study::jobs
  bool stops = true;             // true before, not after; else the other way round
};

struct Study {
  StudySpec spec;
  std::vector<StudyJob> jobs;  // in the order of points_of()
  std::vector<RuleSummary> rules;
  std::vector<Boundary> boundaries;  // by rule, list and job
  int64_t num_nothing_fits = 0;
};

// The same result whatever the number of threads. Throws base::InputError as points_of(), and for layouts that are
// legal in no job.
Study run_study(const StudySpec& spec, base::ProgressSink* sink);

// Whether a rule is true: it holds, or makes no difference. None where it does not apply.
std::optional<bool> is_true(const Outcome& outcome);

// The value of one list at a job, as people read it: "4,096 GPUs", "sequences of 8,192", "llama-3.1-70b".
std::string value_text(const StudyJob& job, std::string_view list);

// The lists of the study that have more than one value, and a job's values in them without units: "4,096".
std::vector<std::string> varied_lists(const Study& study);
std::string plain_value(const StudyJob& job, std::string_view list);

// The values of all lists that have more than one, but for `list`: "llama-3.1-70b, sequences of 8,192".
std::string other_values_text(const Study& study, const StudyJob& job, std::string_view list);

}  // namespace layline::study
