#include "layline/base/line_chart.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace layline::base {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(LineChart, DrawsALineWithItsEnds) {
  const LineChart chart{{4, 3, 2, 1}, "1", "4", 4};
  EXPECT_EQ(line_chart(chart, {.width = 40, .unicode = false}, 0),
            "          4 *\n"
            "             *\n"
            "              *\n"
            "          1    *\n"
            "            1  4\n");
}

TEST(LineChart, BrailleHasEightDotsACell) {
  const LineChart chart{{1, 1, 0, 0}, "", "", 2};
  const std::string text = line_chart(chart, {.width = 40}, 0);
  EXPECT_NE(text.find("\u2809"), std::string::npos) << text;
}

TEST(LineChart, LeavesGapsAndNeedsANumber) {
  EXPECT_EQ(line_chart({{}, "", "", 3}, {}), "");
  EXPECT_EQ(line_chart({{kNan, kNan}, "", "", 3}, {}), "");
  const std::string text = line_chart({{1, kNan, 1}, "", "", 2}, {.width = 40, .unicode = false}, 0);
  EXPECT_NE(text.find("* *"), std::string::npos) << text;
}

RC_GTEST_PROP(LineChart, FitsTheWidth, ()) {
  LineChart chart{*rc::gen::container<std::vector<double>>(rc::gen::arbitrary<double>()), "first", "last", 4};
  const TextStyle style{.width = *rc::gen::inRange(40, 120), .unicode = *rc::gen::arbitrary<bool>()};
  std::istringstream lines(line_chart(chart, style));
  for (std::string line; std::getline(lines, line);) RC_ASSERT(display_width(line) <= style.width);
}

}  // namespace
}  // namespace layline::base
