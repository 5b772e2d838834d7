#include "apps/layline/side_by_side_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/layline/terminal.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"

namespace layline::app {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

std::string ratio(const sweep::Pair& pair) {
  return pair.predicted == 0 ? "" : fmt::format("{:.2f}", pair.measured / pair.predicted);
}

base::TextTable table_of(std::string title, const std::vector<sweep::Pair>& pairs, const sweep::Pair& total,
                         double unit) {
  base::TextTable table({{.title = std::move(title)},
                         {.title = "predicted", .align = base::Align::kRight},
                         {.title = "measured", .align = base::Align::kRight},
                         {.title = "ratio", .align = base::Align::kRight}});
  const auto add = [&](const sweep::Pair& pair) {
    std::string what(pair.what);
    std::ranges::replace(what, '_', ' ');
    table.add_row(
        {what, fmt::format("{:.3f}", pair.predicted / unit), fmt::format("{:.3f}", pair.measured / unit), ratio(pair)});
  };
  for (const sweep::Pair& pair : pairs) add(pair);
  add(total);
  return table;
}

nlohmann::ordered_json json_of(const sweep::Pair& pair) {
  return {{"predicted", pair.predicted}, {"measured", pair.measured}};
}

nlohmann::ordered_json json_of(const std::vector<sweep::Pair>& pairs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const sweep::Pair& pair : pairs) json[std::string(pair.what)] = json_of(pair);
  return json;
}

}  // namespace

std::string text_of(const sweep::SideBySide& beside) {
  std::string text = fmt::format("\nmeasured, the median of {} steps:\n", beside.num_steps);
  text += table_of(fmt::format("seconds, stage {}", beside.slowest_stage), beside.seconds, beside.step_seconds, 1)
              .render(text_style());
  for (size_t stage = 0; stage < beside.stages.size(); ++stage) {
    text += "\n" + table_of(fmt::format("MiB, stage {}", stage), beside.stages[stage].bytes,
                            beside.stages[stage].peak_bytes, kMib)
                       .render(text_style());
  }
  return text;
}

nlohmann::ordered_json json_of(const sweep::SideBySide& beside) {
  nlohmann::ordered_json json;
  json["num_steps"] = beside.num_steps;
  json["step_seconds"] = json_of(beside.step_seconds);
  json["slowest_stage"] = beside.slowest_stage;
  json["seconds"] = json_of(beside.seconds);
  json["stages"] = nlohmann::ordered_json::array();
  for (const sweep::StageBeside& stage : beside.stages) {
    json["stages"].push_back(
        {{"peak_memory_bytes", json_of(stage.peak_bytes)}, {"memory_bytes", json_of(stage.bytes)}});
  }
  return json;
}

}  // namespace layline::app
