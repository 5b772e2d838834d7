// What a report is made of, whatever it is about: sections with text, charts and tables. Builders return these values,
// writers (writers.h) turn them into HTML, text, Markdown or JSON.
//
// A chart is a Vega-Lite specification whose data is named ({"data": {"name": "runs"}}): one of Report::datasets, which
// charts share, so that a run is stored once. Every chart has its table, for those who cannot see it.
//
//   Report report{.title = "Runs of Llama 13B"};
//   report.sections.push_back(best_layouts(runs));
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace layline::report {

struct TableColumn {
  std::string title;              // "step, s"
  bool is_number = false;         // aligned right
  std::string filter_field = {};  // the Filter::field that the column shows; its rows then come and go with the filter
};

// Cells are text as people read it.
struct Table {
  std::string title;
  std::vector<TableColumn> columns = {};
  std::vector<std::vector<std::string>> rows = {};
  std::string note = {};  // under the table; may be empty

  bool empty() const { return rows.empty(); }
};

struct Chart {
  std::string id;                // unique in a report, fit for file names: "kernels"
  std::string title = {};        // what is shown: "MFU by kernel"
  std::string description = {};  // what can be seen in it, in a sentence or two
  nlohmann::json spec = {};      // Vega-Lite 6, without width and colours, which writers choose
  Table table = {};
};

struct Section {
  std::string id;  // unique in a report: "kernels"
  std::string title = {};
  std::vector<std::string> text = {};  // paragraphs
  std::vector<Chart> charts = {};
  std::vector<Table> tables = {};
};

// Rows of numbers, texts, booleans and nulls.
struct Dataset {
  std::vector<std::string> fields;
  std::vector<std::vector<nlohmann::json>> rows = {};  // each with one value a field
};

// Readers choose one value of the field, or all; every chart and table that has the field follows.
struct Filter {
  std::string field;                     // of datasets: "model"
  std::string label = {};                // "Model"
  std::vector<std::string> values = {};  // as texts, in the order in which they are offered
};

struct Report {
  std::string title;
  std::vector<std::string> text = {};  // paragraphs before the first section
  std::vector<Filter> filters = {};
  std::vector<Section> sections = {};
  std::map<std::string, Dataset> datasets = {};
};

}  // namespace layline::report
