// A piece of advice as code: what it says, who says it, and what would show it right or wrong.
//
// A comparison parts the layouts of a job into those that follow the advice and those that do not, and says which two
// measured runs may be held against each other. A prescription names the layouts that it would have a job use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"
#include "layline/study/axis.h"

namespace layline::study {

enum class Side { kFollows, kBreaks, kNeither };

// What a side may depend on beside the layout.
struct Surroundings {
  int64_t gpus_per_node = 8;
  // The least tp·pp of the layouts that fit without recomputation, or of all that fit where none does.
  int64_t least_model_parallel = 1;
};

// Layouts that a rule allows; what the constraints leave free is chosen by price.
struct Prescription {
  layout::LayoutConstraints fix;
  std::optional<layout::Layout> exact;  // all of it is said; `fix` then has what a run record can be matched by
};

struct Rule {
  std::string_view id;  // "micro-batch-1"
  std::string_view statement;
  std::string_view source;

  // Why it says nothing to a job; "" when it does.
  std::string (*why_not)(const spec::Job& job);

  // Of a comparison; null in a prescription. axes: the only ones in which the two of a pair may differ.
  std::vector<Axis> axes;
  Side (*side)(const layout::Layout& layout, const Surroundings& around) = nullptr;
  bool (*is_pair)(const layout::Layout& follows, const layout::Layout& breaks, const Surroundings& around) = nullptr;
  // Searches for what breaks the rule where the usual search leaves it out (slower kernels); null: it does not.
  std::vector<layout::LayoutConstraints> (*breaking)(const spec::Engine& engine) = nullptr;
  // The nearest layout on the other side, legal or not; null when there is no such thing.
  layout::Layout (*turned)(layout::Layout layout) = nullptr;

  // Of a prescription, the first choice first; null in a comparison. The pricer is that of the job.
  std::vector<Prescription> (*prescribe)(const spec::Job& job, cost::Pricer& pricer) = nullptr;

  bool is_comparison() const { return prescribe == nullptr; }
};

// All rules: the paper's recommendations, then what else is in circulation.
const std::vector<Rule>& rules();

// Throws base::InputError with the nearest id.
const Rule& find_rule(std::string_view id);

}  // namespace layline::study
