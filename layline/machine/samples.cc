#include "layline/machine/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "layline/base/file.h"
#include "layline/spec/json_object.h"
#include "layline/spec/measured_names.h"

namespace layline::machine {
namespace {

constexpr int64_t kMaxFileBytes = 64 << 20;
constexpr int64_t kMaxCount = 1'000'000;
constexpr double kMaxNumber = 1e18;

MachineInfo read_machine(spec::JsonObject object) {
  MachineInfo machine;
  machine.name = object.name("machine");
  machine.num_cores = static_cast<int>(object.whole("num_cores", 1, kMaxCount));
  machine.memory_bytes = object.number("memory_bytes", 1, kMaxNumber);
  object.finish();
  return machine;
}

bool counts_with_median(const Point& point) {
  namespace m = spec::measured;
  return std::ranges::any_of(
      std::array{m::kAllReduce, m::kReduceScatter, m::kAllGather, m::kSend, m::kLayerForward, m::kLayerBackward,
                 m::kSplitForward, m::kSplitBackward, m::kSequenceForward, m::kSequenceBackward},
      [&](std::string_view what) { return point.table.starts_with(what); });
}

double counted_seconds(const Sample& sample) {
  return counts_with_median(sample.point) ? sample.seconds * (1 + sample.spread) : sample.seconds;
}

Sample read_sample(spec::JsonObject object) {
  Sample sample;
  sample.num_ranks = static_cast<int>(object.whole("num_ranks", 1, kMaxCount));
  sample.num_threads = static_cast<int>(object.whole("num_threads", 1, kMaxCount));
  sample.point.table = object.name("table");
  sample.point.sizes = object.numbers("sizes", 0, kMaxNumber);
  sample.seconds = object.number("seconds", 1e-12, kMaxNumber);
  sample.spread = object.number("spread", 0, kMaxNumber);
  sample.num_repeats = static_cast<int>(object.whole("num_repeats", 1, kMaxCount));
  object.finish();
  return sample;
}

}  // namespace

std::string to_line(const MachineInfo& machine) {
  const nlohmann::ordered_json json = {
      {"machine", machine.name}, {"num_cores", machine.num_cores}, {"memory_bytes", machine.memory_bytes}};
  return json.dump() + "\n";
}

std::string to_line(const Sample& sample) {
  const nlohmann::ordered_json json = {{"num_ranks", sample.num_ranks},    {"num_threads", sample.num_threads},
                                       {"table", sample.point.table},      {"sizes", sample.point.sizes},
                                       {"seconds", sample.seconds},        {"spread", sample.spread},
                                       {"num_repeats", sample.num_repeats}};
  return json.dump() + "\n";
}

Samples read_samples(const std::string& path) {
  const std::string text = base::read_file(path, kMaxFileBytes);
  Samples samples;
  size_t begin = 0, number = 1;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin), ++number) {
    const std::string where = fmt::format("{}, line {}", path, number);
    const nlohmann::json line = spec::parse_strict_json(std::string_view(text).substr(begin, end - begin), where);
    if (number == 1) {
      samples.machine = read_machine(spec::JsonObject(line, where));
    } else {
      samples.samples.push_back(read_sample(spec::JsonObject(line, where)));
    }
    begin = end + 1;
  }
  return samples;
}

void drop_torn_line(const std::string& path) {
  const std::string text = base::read_file(path, kMaxFileBytes);
  const size_t end = text.rfind('\n');
  std::filesystem::resize_file(path, end == std::string::npos ? 0 : end + 1);
}

std::vector<Point> missing_points(const Samples& samples, int num_ranks) {
  std::set<Point> known;
  for (const Sample& sample : samples.samples) {
    if (sample.num_ranks == num_ranks) known.insert(sample.point);
  }
  std::vector<Point> missing = points_for(num_ranks, samples.machine.num_cores);
  std::erase_if(missing, [&](const Point& point) { return known.count(point) != 0; });
  return missing;
}

std::map<Point, Sample> best_samples(const Samples& samples, int num_ranks) {
  std::map<Point, Sample> best;
  for (const Sample& sample : samples.samples) {
    if (sample.num_ranks != num_ranks) continue;
    const auto [at, is_new] = best.emplace(sample.point, sample);
    if (!is_new && counted_seconds(sample) < counted_seconds(at->second)) at->second = sample;
  }
  return best;
}

std::map<Point, double> seconds_of_points(const Samples& samples, int num_ranks) {
  std::map<Point, double> seconds;
  for (const auto& [point, sample] : best_samples(samples, num_ranks)) seconds.emplace(point, counted_seconds(sample));
  return seconds;
}

std::vector<Point> doubtful_points(const Samples& samples, int num_ranks) {
  constexpr double kTolerance = 1.1;
  const std::map<Point, Sample> best = best_samples(samples, num_ranks);
  const auto is_part_of = [](const Point& small, const Point& large) {
    return small.table == large.table && std::equal(small.sizes.begin(), small.sizes.end(), large.sizes.begin(),
                                                    large.sizes.end(), std::less_equal<>());
  };
  std::vector<Point> doubtful;
  for (const auto& [point, sample] : best) {
    const bool is_slow = std::any_of(best.begin(), best.end(), [&, &small = point, &own = sample](const auto& other) {
      return is_part_of(small, other.first) && counted_seconds(own) > kTolerance * counted_seconds(other.second);
    });
    if (is_slow || sample.spread > kNoisySpread) doubtful.push_back(point);
  }
  return doubtful;
}

}  // namespace layline::machine
