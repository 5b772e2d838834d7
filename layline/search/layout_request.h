// Which layouts of a job someone asks for in a file: all legal ones, a list of texts, or the products of axes.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace layline::search {

// One axis with its values, as words of a layout text: {"tp", {"tp1", "tp2"}}.
struct Axis {
  std::string name;
  std::vector<std::string> words;
};

struct LayoutRequest {
  bool all = false;
  std::vector<std::string> texts;
  std::vector<Axis> axes;

  bool empty() const { return !all && texts.empty() && axes.empty(); }
};

// From `"all"`, a list of texts, or an object of axes with lists. Throws base::InputError with `where` and the place in
// the value: unknown axes, words that are none, empty lists.
LayoutRequest read_layout_request(const nlohmann::json& value, const std::string& where);

// Calls `visit` with the words of every product, the last axis changing fastest.
void for_each_product(const std::vector<Axis>& axes, const std::function<void(const std::vector<std::string>&)>& visit);

}  // namespace layline::search
