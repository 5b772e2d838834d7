// Where the seconds and the bytes of one layout go, what it loses against 100 % MFU, and how two layouts differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::search {

// Seconds of a step that are no model FLOPs at peak, and to what they go. They add up to step - ideal.
struct Loss {
  std::string_view what;
  double seconds = 0;
  double mfu = 0;  // the share of the step, which is the points of MFU it costs
};

struct Explanation {
  PricedLayout priced;
  double mfu = 0;
  double ideal_seconds = 0;              // model FLOPs at the peak of all GPUs
  std::vector<Loss> losses;              // largest first
  std::vector<cost::StagePrice> stages;  // in rank order
  size_t slowest_stage = 0;
  size_t fullest_stage = 0;
  std::vector<std::string> remarks;  // sentences with numbers: traffic, margin, uneven stages
};

// Of a legal layout.
Explanation explain(const spec::Job& job, const layout::Layout& layout);

// One term of two layouts side by side.
struct Difference {
  std::string_view what;
  double first = 0, second = 0;
};

struct Comparison {
  std::vector<Difference> seconds;  // kinds of which one is not 0
  std::vector<Difference> bytes;    // terms of the fullest stage
};

Comparison compare(const Explanation& first, const Explanation& second);

// Short sentences on why the first of a plan wins, from its own numbers and the runners-up.
std::vector<std::string> reasons_to_win(const spec::Job& job, const Plan& plan);

}  // namespace layline::search
