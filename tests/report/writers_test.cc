#include "layline/report/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "layline/report/escape.h"
#include "layline/report/runs_report.h"
#include "layline/report/web_files.h"
#include "tests/report/hand_made.h"

namespace layline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

Report report_of(const std::vector<test::Run>& runs) {
  return runs_report({runs::parse_runs(test::csv_of(runs), "runs.csv")}, {});
}

Report table_report(const std::vector<std::vector<std::string>>& rows) {
  Table table{.title = "A table", .columns = {{.title = "name"}, {.title = "count", .is_number = true}}, .rows = rows};
  return {.title = "A report", .sections = {{.id = "one", .title = "One", .tables = {table}}}};
}

RC_GTEST_PROP(EscapeHtml, LeavesNothingThatHtmlWouldRead, (const std::string& text)) {
  const std::string escaped = escape_html(text);
  RC_ASSERT(escaped.find_first_of("<>\"'") == std::string::npos);
}

RC_GTEST_PROP(ScriptJson, ReadsBackAndCannotEndTheScript, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("</script>!-\"\\\n a&")));
  const nlohmann::json value = {{"name", text}};
  const std::string written = script_json(value);
  RC_ASSERT(written.find('<') == std::string::npos);
  RC_ASSERT(nlohmann::json::parse(written) == value);
}

TEST(ScriptJson, ReplacesBytesThatAreNoUtf8) { EXPECT_TRUE(nlohmann::json::parse(script_json("a\xff\xfe")).is_string()); }

TEST(Html, EscapesNamesEverywhere) {
  const std::string name = "</script><script>alert(1)</script>\"'&";
  auto runs = test::varied_runs();
  for (test::Run& run : runs) run.model = name;
  const std::string page = to_html(report_of(runs));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)"));
  // Only the page's own scripts: data and four programs.
  EXPECT_EQ(count(page, "<script>") + count(page, "<script type="), 5u);
  EXPECT_EQ(count(page, "</script>"), 5u);
}

TEST(Html, LoadsNothingFromElsewhere) {
  const std::string page = to_html(report_of(test::varied_runs()));
  const std::string own = page.substr(0, page.find("<script"));
  EXPECT_THAT(own, Not(HasSubstr("http:")));
  EXPECT_THAT(own, Not(HasSubstr("https:")));
  EXPECT_EQ(count(page, "<script src"), 0u);
  EXPECT_THAT(page, HasSubstr(std::string(vega_script().substr(0, 1000))));
  EXPECT_THAT(page, HasSubstr(std::string(vega_lite_script().substr(vega_lite_script().size() - 500))));
}

TEST(Html, GivesEveryChartALabelAndItsTable) {
  const Report report = report_of(test::varied_runs());
  const std::string page = to_html(report);
  size_t num_charts = 0;
  for (const Section& section : report.sections) {
    num_charts += section.charts.size();
    EXPECT_THAT(page, HasSubstr("<section id=\"" + section.id + "\""));
    EXPECT_THAT(page, HasSubstr("<a href=\"#" + section.id + "\">"));
  }
  EXPECT_EQ(count(page, "<figure data-chart="), num_charts);
  EXPECT_EQ(count(page, "role=\"img\" aria-label=\""), num_charts);
  EXPECT_EQ(count(page, "<details><summary>The numbers"), num_charts);
  for (const char* landmark : {"<main", "<nav", "<header>", "<footer>", "lang=\"en\"", "name=\"viewport\""}) {
    EXPECT_THAT(page, HasSubstr(landmark));
  }
}

TEST(Html, KeepsEveryRunOnceHoweverManyChartsShowIt) {
  auto runs = test::varied_runs();
  runs[0].model = "a-name-like-no-other";
  const std::string page = to_html(report_of(runs));
  const size_t data = page.find("id=\"report-data\"");
  const std::string stored = page.substr(data, page.find("</script>", data) - data);
  // As a word of the model column and of the charts' lists of jobs, not once a chart and row.
  EXPECT_EQ(count(stored, "\"a-name-like-no-other\""), 2u) << "in runs and in stages";
}

TEST(Html, CutsLongTablesAndSaysSo) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < kMaxTableRows + 5; ++i) rows.push_back({"row", std::to_string(i)});
  const std::string page = to_html(table_report(rows));
  EXPECT_THAT(page, HasSubstr("The first 1000 of 1005 rows"));
  EXPECT_EQ(count(page, "<tr>"), kMaxTableRows + 1);
}

TEST(Text, KeepsToTheWidth) {
  for (const int width : {80, 100}) {
    const std::string text = to_text(report_of(test::varied_runs()), {.width = width});
    size_t at = 0;
    while (at < text.size()) {
      const size_t end = text.find('\n', at);
      const std::string line = text.substr(at, end - at);
      EXPECT_LE(base::display_width(line), width) << line;
      at = end + 1;
    }
  }
}

TEST(Text, SaysHowManyRowsItLeavesOut) {
  EXPECT_THAT(to_text(table_report({{"a", "1"}, {"b", "2"}, {"c", "3"}}), {}, 1), HasSubstr("… and 2 more"));
}

TEST(Markdown, EscapesWhatTablesWouldRead) {
  const std::string text = to_markdown(table_report({{"a|b\nc<d>_e_", "1"}}));
  EXPECT_THAT(text, HasSubstr("| a\\|b c&lt;d>\\_e\\_ | 1 |"));
  EXPECT_THAT(text, HasSubstr("|---|---:|"));
}

TEST(Json, HoldsTheWholeReport) {
  const Report report = report_of(test::varied_runs());
  const auto json = nlohmann::json::parse(to_json_text(report));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["sections"].size(), report.sections.size());
  EXPECT_EQ(json["datasets"]["runs"]["rows"].size(), test::varied_runs().size());
  EXPECT_EQ(json["sections"][1]["charts"][0]["vega_lite"]["data"]["name"], "runs");
}

TEST(CheckReport, RefusesRowsThatDoNotMatchTheirColumns) {
  EXPECT_THROW(to_html(table_report({{"only one cell"}})), std::logic_error);
  Report report = table_report({});
  report.sections.push_back(report.sections[0]);
  EXPECT_THROW(to_html(report), std::logic_error);
  Report unfed = table_report({});
  unfed.sections[0].charts.push_back({.id = "c", .spec = {{"data", {{"name", "nothing"}}}}});
  EXPECT_THROW(to_html(unfed), std::logic_error);
}

}  // namespace
}  // namespace layline::report
