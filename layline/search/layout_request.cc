#include "layline/search/layout_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"

namespace layline::search {
namespace {

using nlohmann::json;

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

}  // namespace

LayoutRequest read_layout_request(const json& value, const std::string& where) {
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

void for_each_product(const std::vector<Axis>& axes,
                      const std::function<void(const std::vector<std::string>&)>& visit) {
  std::vector<size_t> at(axes.size(), 0);
  while (true) {
    std::vector<std::string> words;
    for (size_t i = 0; i < axes.size(); ++i) words.push_back(axes[i].words[at[i]]);
    visit(words);
    size_t i = axes.size();
    while (i > 0 && ++at[i - 1] == axes[i - 1].words.size()) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace layline::search
