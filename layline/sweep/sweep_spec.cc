#include "layline/sweep/sweep_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/spec/json_object.h"

namespace layline::sweep {
namespace {

using nlohmann::json;
using spec::JsonObject;

constexpr int64_t kMaxFileBytes = 8 << 20;
constexpr int64_t kMaxRanks = 4096;
constexpr int64_t kMaxRepeats = 1000;
constexpr double kMaxSeconds = 1e9;

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
    spec.layouts = search::read_layout_request(value["layouts"], where + ": $.layouts");
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
