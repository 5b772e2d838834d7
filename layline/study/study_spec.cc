#include "layline/study/study_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/spec/json_object.h"
#include "layline/spec/registry.h"

namespace layline::study {
namespace {

using spec::JsonObject;

constexpr int64_t kMaxFileBytes = 8 << 20;
constexpr int64_t kMaxGpus = 1'000'000;
constexpr int64_t kMaxTokens = int64_t{1} << 40;

std::vector<std::string> names(JsonObject& object, const std::string& key) {
  std::vector<std::string> found = object.texts(key);
  if (found.empty() && object.is_list(key)) object.fail(key, "found [], want at least one name");
  return found;
}

std::vector<int64_t> counts(JsonObject& object, const std::string& key, int64_t upper) {
  std::vector<int64_t> found = object.wholes(key, 1, upper);
  if (found.empty() && object.is_list(key)) object.fail(key, "found [], want at least one number");
  std::sort(found.begin(), found.end());
  return found;
}

// Reads each name with `get`, and says where in the file the one stands that cannot be read.
template <typename Get>
auto specs_of(const StudySpec& spec, const char* key, const std::vector<std::string>& from, Get get) {
  std::vector<decltype(get(from.front()))> specs;
  for (size_t i = 0; i < from.size(); ++i) {
    try {
      specs.push_back(get(from[i]));
    } catch (const base::InputError& error) {
      throw base::InputError(fmt::format("{}: $.{}[{}]", spec.where, key, i), error.what());
    }
  }
  return specs;
}

void check_size(const StudySpec& spec) {
  size_t product = 1;
  for (const size_t size : {spec.models.size(), spec.clusters.size(), spec.engines.size(), spec.gpus.size(),
                            spec.sequence_lengths.size(), spec.global_batch_tokens.size()}) {
    if (__builtin_mul_overflow(product, size, &product)) product = SIZE_MAX;
  }
  if (product > kMaxJobs) {
    throw base::InputError(spec.where, fmt::format("its lists have {} products, want at most {}", product, kMaxJobs));
  }
}

void check_batches(const StudySpec& spec) {
  for (const int64_t tokens : spec.global_batch_tokens) {
    for (const int64_t length : spec.sequence_lengths) {
      if (tokens % length == 0) continue;
      throw base::InputError(spec.where + ": $.global_batch_tokens",
                             fmt::format("{} tokens are no whole number of sequences of {}", tokens, length));
    }
  }
}

void check_nodes(const StudySpec& spec, const std::vector<spec::Cluster>& clusters) {
  for (const int64_t gpus : spec.gpus) {
    for (const spec::Cluster& cluster : clusters) {
      const int64_t node = cluster.gpus_per_node;
      if (gpus <= node || gpus % node == 0) continue;
      throw base::InputError(
          spec.where + ": $.gpus",
          fmt::format("{} GPUs are neither less than a node nor whole nodes of {} ({})", gpus, node, cluster.name));
    }
  }
}

void check(const StudySpec& spec, const spec::Job& job) {
  try {
    spec::check_job(job);
  } catch (const base::InputError& error) {
    throw base::InputError(spec.where, fmt::format("{} on {} {} with {}: {}", job.model.name, job.num_gpus,
                                                   job.cluster.name, job.engine.name, error.what()));
  }
}

// To the next point; false after the last.
bool step(const StudySpec& spec, StudyPoint& at) {
  const std::pair<size_t&, size_t> counters[] = {{at.gpus, spec.gpus.size()},
                                                 {at.global_batch_tokens, spec.global_batch_tokens.size()},
                                                 {at.sequence_length, spec.sequence_lengths.size()},
                                                 {at.model, spec.models.size()},
                                                 {at.cluster, spec.clusters.size()},
                                                 {at.engine, spec.engines.size()}};
  for (const auto& [index, size] : counters) {
    if (++index < size) return true;
    index = 0;
  }
  return false;
}

}  // namespace

StudySpec parse_study_spec(std::string_view text, const std::string& where) {
  const nlohmann::json value = spec::parse_strict_json(text, where);
  JsonObject object(value, where);
  StudySpec spec;
  spec.where = where;
  spec.name = std::filesystem::path(where).stem().string();
  spec.models = names(object, "models");
  spec.clusters = names(object, "clusters");
  spec.engines = names(object, "engines");
  spec.gpus = counts(object, "gpus", kMaxGpus);
  spec.sequence_lengths = counts(object, "sequence_lengths", kMaxTokens);
  spec.global_batch_tokens = counts(object, "global_batch_tokens", kMaxTokens);
  if (object.has("precision")) {
    spec.precision = static_cast<spec::Precision>(object.choice("precision", spec::kPrecisionNames));
  }
  if (object.has("layouts")) spec.layouts = search::read_layout_request(value["layouts"], where + ": $.layouts");
  object.finish();
  return spec;
}

StudySpec read_study_spec(const std::string& path) {
  return parse_study_spec(base::read_file(path, kMaxFileBytes), path);
}

std::vector<StudyPoint> points_of(const StudySpec& spec) {
  check_size(spec);
  check_batches(spec);
  const auto models = specs_of(spec, "models", spec.models, spec::get_model);
  const auto clusters = specs_of(spec, "clusters", spec.clusters, spec::get_cluster);
  const auto engines = specs_of(spec, "engines", spec.engines, spec::get_engine);
  check_nodes(spec, clusters);
  std::vector<StudyPoint> points;
  StudyPoint at;
  do {
    spec::Job job;
    job.model = models[at.model];
    job.cluster = clusters[at.cluster];
    job.engine = engines[at.engine];
    job.calibration = spec::default_calibration(job.engine, job.cluster);
    job.precision = spec.precision;
    job.sequence_length = spec.sequence_lengths[at.sequence_length];
    job.global_batch = spec.global_batch_tokens[at.global_batch_tokens] / job.sequence_length;
    job.num_gpus = spec.gpus[at.gpus];
    check(spec, job);
    at.job = std::make_shared<const spec::Job>(std::move(job));
    points.push_back(at);
  } while (step(spec, at));
  return points;
}

}  // namespace layline::study
