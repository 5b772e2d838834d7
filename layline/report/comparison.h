// The best of each choice beside the others, job by job: the shape of most questions that sweeps answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "layline/report/figure.h"
#include "layline/report/jobs.h"

namespace layline::report {

struct Comparison {
  std::string id = {}, title = {};  // of the section
  std::string chart_title = {};
  std::string choice = {};  // column and axis: "micro-batch"
  std::string field = {};   // of the runs dataset that holds the choice
  std::function<std::string(const ReportRun&)> choice_of = {};
  bool within_kernel = false;  // choices are compared for each kernel apart
  std::string question = {};   // "the same micro-batch": what measured and predicted best agree on
};

// The best measured run of each choice.
struct BestOfChoice {
  std::string job, kernel, choice;
  const ReportRun* run = nullptr;
};

// In the order of jobs_of(), then by kernel where that matters, then by choice. Only jobs (and kernels) with at least
// two choices that ran.
std::vector<BestOfChoice> best_of_choices(const RunList& runs, const Comparison& comparison);

// How often the choice that was best is the one that the model predicts to be best, over runs that ran and are
// predicted.
struct Agreement {
  int64_t num_groups = 0;
  int64_t num_same = 0;
  double mean_abs_mfu_difference = 0;   // of the best of each choice, as a fraction
  std::vector<std::string> exceptions;  // "Llama-13B, 2k, 64 GPUs: 1 was best, 2 is predicted (…)"
};
Agreement agreement_of(const RunList& runs, const Comparison& comparison);
std::string agreement_text(const Agreement& agreement, const Comparison& comparison);

Section comparison_section(const RunList& runs, const Comparison& comparison);

}  // namespace layline::report
