// A report as a file: one self-contained HTML page, text, Markdown or JSON.
#pragma once

#include <string>

#include "layline/base/text_table.h"
#include "layline/report/figure.h"

namespace layline::report {

// One file that needs no network: scripts, data and styles inside. Charts are drawn in the reader's browser. Tables of
// more than kMaxTableRows rows are cut, and say so.
inline constexpr size_t kMaxTableRows = 1000;
std::string to_html(const Report& report);

// Text for terminals and Markdown have the tables of the charts, at most `max_rows` rows of each.
std::string to_text(const Report& report, const base::TextStyle& style, size_t max_rows = 30);
std::string to_markdown(const Report& report, size_t max_rows = 100);

// {"schema_version": 1, "title", "text", "sections": [{"id", "title", "text", "charts": [{"id", "title", "description",
// "vega_lite", "table"}], "tables": [{"title", "columns", "rows", "note"}]}], "datasets": {name: {"fields", "rows"}}}
std::string to_json_text(const Report& report);

// The page in which a browser draws every chart and leaves them as SVG and PNG: see apps/layline/browser.h.
std::string to_export_page(const Report& report);

// Throws std::logic_error when a chart's data is no dataset of the report, ids repeat, or a row is too long or short.
void check_report(const Report& report);

}  // namespace layline::report
