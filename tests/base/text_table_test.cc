#include "layline/base/text_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace layline::base {
namespace {

constexpr TextStyle kAscii{.width = 100, .unicode = false};

TEST(TextTable, AlignsColumnsAndTrimsLineEnds) {
  TextTable table({{.title = "layout"}, {.title = "step s", .align = Align::kRight}, {.title = "note"}});
  table.add_row({"dp64 tp1", "26.5"});
  table.add_row({"dp8", "109.1", "slow"});
  table.add_line("…");
  EXPECT_EQ(table.render({}),
            "  layout    step s  note\n"
            "  dp64 tp1    26.5\n"
            "  dp8        109.1  slow\n"
            "  …\n");
}

TEST(TextTable, CountsCharactersAndNotBytes) {
  TextTable table({{}, {}});
  table.add_row({"±µ", "x"});
  table.add_row({"abc", "y"});
  EXPECT_EQ(table.render({}, 0), "±µ   x\nabc  y\n");
}

TEST(TextTable, LeavesOutTheLeastImportantColumnsFirst) {
  TextTable table({{.title = "aaaaaaaaaa"},
                   {.title = "bbbbbbbbbb", .drop_priority = 1},
                   {.title = "cccccccccc", .drop_priority = 2}});
  EXPECT_EQ(table.render({.width = 36}), "  aaaaaaaaaa  bbbbbbbbbb  cccccccccc\n");
  EXPECT_EQ(table.render({.width = 35}), "  aaaaaaaaaa  bbbbbbbbbb\n");
  EXPECT_EQ(table.render({.width = 20}), "  aaaaaaaaaa\n");
}

TEST(TextTable, ShortensWhatMayBeShortened) {
  TextTable table({{.title = "layout", .can_shorten = true}, {.title = "s"}});
  table.add_row({"dp16 tp2 pp2 mb1 sp zero1", "9"});
  EXPECT_EQ(table.render({.width = 20}), "  layout           s\n  dp16 tp2 pp2 m…  9\n");
}

TEST(Bar, HasEighthsOfACellOrHashes) {
  EXPECT_EQ(bar(0.5, 4), "██  ");
  EXPECT_EQ(bar(0.40625, 4), "█▋  ");
  EXPECT_EQ(bar(1, 3), "███");
  EXPECT_EQ(bar(0, 2, {}, true), "░░");
  EXPECT_EQ(bar(0.5, 4, kAscii), "##  ");
  EXPECT_EQ(bar(0.5, 4, kAscii, true), "##..");
}

TEST(Sparkline, IsAsHighAsItsValues) {
  EXPECT_EQ(sparkline({0, 1, 2, 4}), "▁▃▅█");
  EXPECT_EQ(sparkline({0, 4.5, 9}, kAscii), "059");
  EXPECT_EQ(sparkline({}), "");
}

RC_GTEST_PROP(Bar, TakesAsManyCellsAsAskedFor, (double fraction, bool unicode, bool track)) {
  const int num_cells = *rc::gen::inRange(0, 60);
  RC_ASSERT(display_width(bar(fraction, num_cells, {100, unicode}, track)) == num_cells);
}

RC_GTEST_PROP(Shorten, NeverExceedsItsWidth, (const std::string& text)) {
  const int width = *rc::gen::inRange(0, 30);
  RC_ASSERT(display_width(shorten(text, width)) <= width);
}

RC_GTEST_PROP(TextTable, FitsTheWidthWhenEveryColumnMayGo, ()) {
  const int width = *rc::gen::inRange(40, 120);
  const auto num_columns = static_cast<size_t>(*rc::gen::inRange(1, 12));
  std::vector<TextColumn> columns(num_columns);
  for (size_t i = 0; i < num_columns; ++i) columns[i].drop_priority = static_cast<int>(i);
  columns[0].can_shorten = true;
  TextTable table(columns);
  table.add_row(*rc::gen::container<std::vector<std::string>>(
      num_columns, rc::gen::container<std::string>(rc::gen::inRange('a', 'z'))));
  std::istringstream lines(table.render({.width = width}));
  for (std::string line; std::getline(lines, line);) RC_ASSERT(display_width(line) <= width);
}

}  // namespace
}  // namespace layline::base
