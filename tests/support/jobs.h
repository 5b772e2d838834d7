// Jobs that tests share, from the shipped specs.
#pragma once

#include <string>

#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"
#include "layline/spec/registry.h"

namespace layline::test {

struct JobText {
  std::string model = "llama-13b";
  std::string cluster = "a100-80gb";
  std::string engine = "aleph-scaling";
  int64_t num_gpus = 64;
  int64_t global_batch = 2048;
  int64_t sequence_length = 2048;
};

inline spec::Job make_job(const JobText& text) {
  spec::Job job;
  job.model = spec::get_model(text.model);
  job.cluster = spec::get_cluster(text.cluster);
  job.engine = spec::get_engine(text.engine);
  job.num_gpus = text.num_gpus;
  job.global_batch = text.global_batch;
  job.sequence_length = text.sequence_length;
  return job;
}

inline layout::Layout layout_of(const spec::Job& job, const std::string& text) {
  return layout::parse_layout(text, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine)});
}

}  // namespace layline::test
