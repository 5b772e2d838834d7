// Rules of thumb that name a layout, each as the layouts that it would have a job use, the first choice first. All are
// Rule::prescribe; none looks at prices but to see what fits.
#pragma once

#include <vector>

#include "layline/cost/step.h"
#include "layline/spec/job.h"
#include "layline/study/rule.h"

namespace layline::study {

// The axes that Megatron's guides give for a few model sizes; "" in why_not only near those sizes.
std::string why_not_in_megatron_table(const spec::Job& job);
std::vector<Prescription> megatron_table(const spec::Job& job, cost::Pricer& pricer);

// As many data-parallel replicas as 18 bytes a parameter in 75 % of the memory allow; pipeline stages before tensor
// parallelism, which only serves layers that do not fit.
std::vector<Prescription> bigscience(const spec::Job& job, cost::Pricer& pricer);

// Plain data parallelism, then ZeRO, then model parallelism inside a node; between nodes ZeRO on fast links and
// pipelines of tensor-parallel nodes on slow ones.
std::vector<Prescription> hugging_face(const spec::Job& job, cost::Pricer& pricer);

// search::default_layout: tensor parallelism fills the node first.
std::vector<Prescription> fill_the_node(const spec::Job& job, cost::Pricer& pricer);

}  // namespace layline::study
