// STUDY.json: the jobs that the rules are tried on, as the products of lists (docs/study.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layline/search/layout_request.h"
#include "layline/spec/job.h"

namespace layline::study {

inline constexpr size_t kMaxJobs = 5'000;

struct StudySpec {
  std::string where;  // the file it was read from, for messages
  std::string name;   // of the file, without folder and ending
  // Names or paths of specs, in the order of the file; numbers increasing.
  std::vector<std::string> models, clusters, engines;
  std::vector<int64_t> gpus, sequence_lengths, global_batch_tokens;
  spec::Precision precision = spec::Precision::kBf16;
  search::LayoutRequest layouts;  // empty: all legal ones
};

// Throws base::InputError: unknown keys with the nearest, empty lists, wrong types, names that are twice in a list.
StudySpec parse_study_spec(std::string_view text, const std::string& where);
StudySpec read_study_spec(const std::string& path);

// One point of the product: where it stands in each list, and its job.
struct StudyPoint {
  size_t engine = 0, cluster = 0, model = 0, sequence_length = 0, global_batch_tokens = 0, gpus = 0;
  std::shared_ptr<const spec::Job> job;  // calibrated as `layline plan` does
};

// All points, GPUs changing fastest, then batch, length, model, cluster and engine. Throws base::InputError with the
// place in the file: unknown names, a number of GPUs that is not whole nodes of every cluster, tokens that are not
// whole sequences, more than kMaxJobs points.
std::vector<StudyPoint> points_of(const StudySpec& spec);

}  // namespace layline::study
