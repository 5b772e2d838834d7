#include "layline/report/vega_spec.h"

namespace layline::report {

using nlohmann::json;

json chart_spec(const std::string& dataset) {
  return {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"}, {"data", {{"name", dataset}}}};
}

json filter_transform(const std::string& expression) { return {{"filter", expression}}; }

json one_of_transform(const std::string& field, const std::vector<std::string>& values) {
  return {{"filter", {{"field", field}, {"oneOf", values}}}};
}

std::vector<json> best_of_transform(const std::vector<std::string>& group_fields) {
  const json rank = json::array({{{"op", "row_number"}, {"as", "rank"}}});
  const json sort = json::array({{{"field", "mfu"}, {"order", "descending"}}});
  return {filter_transform("datum.ran && isValid(datum.mfu)"),
          {{"window", rank}, {"groupby", group_fields}, {"sort", sort}},
          filter_transform("datum.rank === 1")};
}

json quantity(const std::string& field, const std::string& title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

json category(const std::string& field, const std::string& title) {
  json channel = {{"field", field}, {"type", "nominal"}, {"sort", nullptr}};
  channel["title"] = title.empty() ? json(nullptr) : json(title);
  return channel;
}

json percent(const std::string& field, const std::string& title) {
  json channel = quantity(field, title);
  channel["axis"] = {{"format", "%"}};
  return channel;
}

json tooltip(const std::vector<std::pair<std::string, std::string>>& fields_and_titles) {
  json list = json::array();
  for (const auto& [field, title] : fields_and_titles) list.push_back({{"field", field}, {"title", title}});
  return list;
}

json facet(json spec, const std::string& field, const std::vector<std::string>& values, int cell_width,
           int axis_width) {
  json outer;
  for (const char* key : {"$schema", "data", "transform"}) {
    if (!spec.contains(key)) continue;
    outer[key] = spec[key];
    spec.erase(key);
  }
  spec["width"] = cell_width;
  outer["facet"] = {{"field", field}, {"type", "nominal"}, {"sort", values}, {"title", nullptr}};
  outer["columns"] = 3;
  outer["spec"] = std::move(spec);
  outer["usermeta"] = {{"cell_width", cell_width}, {"axis_width", axis_width}};
  return outer;
}

json run_tooltip() {
  json list = tooltip({{"job", "job"}, {"layout", "layout"}, {"kernel", "kernel"}});
  list.push_back({{"field", "seconds"}, {"title", "measured, s"}, {"format", ",.4~g"}});
  list.push_back({{"field", "predicted_seconds"}, {"title", "predicted, s"}, {"format", ",.4~g"}});
  list.push_back({{"field", "mfu"}, {"title", "MFU"}, {"format", ".1%"}});
  list.push_back({{"field", "predicted_mfu"}, {"title", "predicted MFU"}, {"format", ".1%"}});
  return list;
}

}  // namespace layline::report
