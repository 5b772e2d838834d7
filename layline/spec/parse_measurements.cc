#include "layline/spec/parse_measurements.h"

#include <fmt/format.h>

#include <algorithm>

namespace layline::spec {
namespace {

constexpr double kMaxSize = 1e15;
constexpr double kMaxSeconds = 1e6;
constexpr int64_t kMaxRanks = 1'000'000;

MeasuredTable read_table(JsonObject& object) {
  MeasuredTable table;
  size_t num_points = 1;
  for (int axis = 0; object.has(fmt::format("axis_{}", axis)); ++axis) {
    const std::string key = fmt::format("axis_{}", axis);
    table.axes.push_back(object.numbers(key, 1e-12, kMaxSize));
    const std::vector<double>& points = table.axes.back();
    if (points.empty() || std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) != points.end()) {
      object.fail(key, "found sizes that do not rise, or none");
    }
    num_points *= points.size();
  }
  table.seconds = object.numbers("seconds", 1e-12, kMaxSeconds);
  if (!table.axes.empty() && table.seconds.size() != num_points) {
    object.fail("seconds", fmt::format("found {} numbers, want {}, one for each point of the axes",
                                       table.seconds.size(), num_points));
  }
  return table;
}

MeasuredRanks read_ranks(JsonObject& object) {
  MeasuredRanks ranks;
  ranks.num_ranks = static_cast<int>(object.whole("num_ranks", 1, kMaxRanks));
  ranks.num_threads = static_cast<int>(object.whole("num_threads", 1, kMaxRanks));
  for (JsonObject& table : object.objects("tables")) {
    const std::string name = table.name("name");
    ranks.tables[name] = read_table(table);
    table.finish();
    if (ranks.tables[name].axes.empty()) table.fail("axis_0", "is missing");
  }
  object.finish();
  return ranks;
}

nlohmann::ordered_json json_of(const MeasuredRanks& ranks) {
  nlohmann::ordered_json json;
  json["num_ranks"] = ranks.num_ranks;
  json["num_threads"] = ranks.num_threads;
  json["tables"] = nlohmann::ordered_json::array();
  for (const auto& [name, table] : ranks.tables) {
    nlohmann::ordered_json one;
    one["name"] = name;
    for (size_t i = 0; i < table.axes.size(); ++i) one[fmt::format("axis_{}", i)] = table.axes[i];
    one["seconds"] = table.seconds;
    json["tables"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

Measurements read_measurements(JsonObject object) {
  Measurements measured;
  measured.engine = object.name("engine");
  measured.machine = object.name("machine");
  measured.num_cores = static_cast<int>(object.whole("num_cores", 1, kMaxRanks));
  measured.memory_bytes = object.number("memory_bytes", 1, kMaxSize);
  for (JsonObject& ranks : object.objects("by_ranks")) {
    measured.by_ranks.push_back(read_ranks(ranks));
    const size_t n = measured.by_ranks.size();
    if (n > 1 && measured.by_ranks[n - 1].num_ranks <= measured.by_ranks[n - 2].num_ranks) {
      ranks.fail("num_ranks", "does not rise");
    }
  }
  object.finish();
  if (measured.by_ranks.empty()) object.fail("by_ranks", "is empty");
  return measured;
}

nlohmann::ordered_json json_of(const Measurements& measurements) {
  nlohmann::ordered_json json;
  json["engine"] = measurements.engine;
  json["machine"] = measurements.machine;
  json["num_cores"] = measurements.num_cores;
  json["memory_bytes"] = measurements.memory_bytes;
  json["by_ranks"] = nlohmann::ordered_json::array();
  for (const MeasuredRanks& ranks : measurements.by_ranks) json["by_ranks"].push_back(json_of(ranks));
  return json;
}

}  // namespace layline::spec
