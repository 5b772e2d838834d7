#include "layline/sweep/sweep_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/json_object.h"

namespace layline::sweep {
namespace {

using nlohmann::json;
using spec::JsonObject;

constexpr int64_t kMaxFileBytes = 8 << 20;
constexpr int64_t kMaxRanks = 4096;
constexpr int64_t kMaxRepeats = 1000;
constexpr double kMaxSeconds = 1e9;

constexpr std::array<std::string_view, 7> kNumberAxes = {"dp", "tp", "pp", "cp", "ep", "vp", "mb"};
constexpr std::array<std::string_view, 2> kShardingAxes = {"zero", "hsdp"};
constexpr std::array<std::string_view, 5> kNamedAxes = {"ckpt", "sched", "split", "attn", "norm"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The word of a layout text that a value of an axis stands for.
std::string word_of(const std::string& axis, const json& value, const std::string& where) {
  const auto fail = [&](const char* want) -> std::string {
    throw base::InputError(where, fmt::format("found {}, want {}", value.dump(), want));
  };
  if (axis == "sp") {
    if (value == 0 || value == false) return "sp0";
    if (value == 1 || value == true) return "sp";
    return fail("0 or 1");
  }
  if (is_one_of(kNamedAxes, axis)) {
    return value.is_string() ? fmt::format("{}={}", axis, value.get<std::string>()) : fail("a text");
  }
  return value.is_number_unsigned() ? fmt::format("{}{}", axis, value.get<uint64_t>()) : fail("a whole number");
}

Axis read_axis(const std::string& name, const json& values, const std::string& where) {
  Axis axis{name, {}};
  const json list = values.is_array() ? values : json::array({values});
  if (list.empty()) throw base::InputError(where, "found [], want at least one value");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = values.is_array() ? fmt::format("{}[{}]", where, i) : where;
    const std::string word = word_of(name, list[i], place);
    layout::parse_constraints(word, place);  // throws when it is no such word
    if (!is_one_of(axis.words, word)) axis.words.push_back(word);
  }
  return axis;
}

std::vector<Axis> read_axes(const json& value, const std::string& where) {
  std::vector<std::string> known = {"sp"};
  for (const auto& names : {std::vector<std::string_view>(kNumberAxes.begin(), kNumberAxes.end()),
                            std::vector<std::string_view>(kShardingAxes.begin(), kShardingAxes.end()),
                            std::vector<std::string_view>(kNamedAxes.begin(), kNamedAxes.end())}) {
    known.insert(known.end(), names.begin(), names.end());
  }
  std::vector<Axis> axes;
  for (auto entry = value.begin(); entry != value.end(); ++entry) {
    if (!is_one_of(known, entry.key())) {
      throw base::InputError(where, base::unknown_name_message("axis", entry.key(), known));
    }
    axes.push_back(read_axis(entry.key(), entry.value(), fmt::format("{}.{}", where, entry.key())));
  }
  return axes;
}

LayoutRequest read_layouts(const json& value, const std::string& where) {
  LayoutRequest request;
  if (value == "all") {
    request.all = true;
  } else if (value.is_object()) {
    request.axes = read_axes(value, where);
  } else if (value.is_array() && !value.empty()) {
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string place = fmt::format("{}[{}]", where, i);
      if (!value[i].is_string()) throw base::InputError(place, fmt::format("found {}, want a layout", value[i].dump()));
      request.texts.push_back(value[i].get<std::string>());
      layout::parse_constraints(request.texts.back(), place);
    }
  } else {
    throw base::InputError(where, fmt::format("found {}, want \"all\", a list of layouts, or an object of axes",
                                              value.dump().substr(0, 40)));
  }
  return request;
}

std::vector<int64_t> read_ranks(JsonObject& object) {
  std::vector<int64_t> ranks =
      object.is_list("ranks") ? object.wholes("ranks", 1, kMaxRanks) : std::vector{object.whole("ranks", 1, kMaxRanks)};
  if (ranks.empty()) object.fail("ranks", "found [], want at least one number");
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

trainer::config::RunConfig read_base(const json& value, JsonObject& object, const std::string& where) {
  object.object("base");  // throws when it is none
  if (!value.contains("base")) return {};
  trainer::config::RunConfig base = trainer::config::parse_run_config(value["base"].dump(), where + ": base");
  const auto refuse = [&](const char* key, const char* why) {
    throw base::InputError(fmt::format("{}: base: $.{}", where, key), why);
  };
  if (base.layout != "auto") refuse("layout", "is there, but `layouts` says what is run; leave it out");
  if (!base.metrics.empty()) refuse("metrics", "is there, but every run has a file of its own; leave it out");
  if (!base.checkpoint.directory.empty()) refuse("checkpoint", "is there, but runs keep nothing; leave it out");
  return base;
}

SweepSpec read_spec(const json& value, const std::string& where) {
  JsonObject object(value, where);
  SweepSpec spec;
  spec.where = where;
  spec.name = std::filesystem::path(where).stem().string();
  spec.base = read_base(value, object, where);
  spec.ranks = read_ranks(object);
  if (object.has("layouts")) {
    spec.layouts = read_layouts(value["layouts"], where + ": $.layouts");
  } else {
    object.require_all();
    object.fail("layouts", "is missing: want \"all\", a list of layouts, or an object of axes");
  }
  if (object.has_value("memory_limit_bytes")) {
    spec.base.memory_limit_bytes = object.whole("memory_limit_bytes", 1, int64_t{1} << 50);
  }
  if (object.has_value("time_limit_seconds")) {
    spec.time_limit_seconds = object.number("time_limit_seconds", 1e-3, kMaxSeconds);
  }
  if (object.has_value("stop_when_slower_than_best_by")) {
    spec.stop_when_slower_than_best_by = object.number("stop_when_slower_than_best_by", 1, 1e6);
  }
  if (object.has_value("repeats")) spec.repeats = object.whole("repeats", 1, kMaxRepeats);
  object.finish();
  return spec;
}

}  // namespace

SweepSpec parse_sweep_spec(std::string_view text, const std::string& where) {
  return read_spec(spec::parse_strict_json(text, where), where);
}

SweepSpec read_sweep_spec(const std::string& path) {
  return parse_sweep_spec(base::read_file(path, kMaxFileBytes), path);
}

}  // namespace layline::sweep
