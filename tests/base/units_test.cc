#include "layline/base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "layline/base/error.h"

namespace layline::base {
namespace {

TEST(FormatSeconds, ReadsWellFromNanosecondsToDays) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(740e-9), "740 ns");
  EXPECT_EQ(format_seconds(25e-6), "25 µs");
  EXPECT_EQ(format_seconds(3.0e-3), "3 ms");
  EXPECT_EQ(format_seconds(26.54), "26.5 s");
  EXPECT_EQ(format_seconds(1.234), "1.23 s");
  EXPECT_EQ(format_seconds(250), "4 min 10 s");
  EXPECT_EQ(format_seconds(300), "5 min");
  EXPECT_EQ(format_seconds(12000), "3 h 20 min");
  EXPECT_EQ(format_seconds(12.5 * 86400), "12.5 days");
  EXPECT_EQ(format_seconds(2e9), "23,148 days");
}

TEST(FormatSeconds, RoundsIntoTheNextUnit) {
  EXPECT_EQ(format_seconds(0.99999), "1 s");
  EXPECT_EQ(format_seconds(99.99), "1 min 40 s");
  EXPECT_EQ(format_seconds(3599.9), "1 h");
}

TEST(FormatBytes, UsesBinaryUnits) {
  EXPECT_EQ(format_bytes(640), "640 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(71.2 * kGib), "71.2 GiB");
  EXPECT_EQ(format_bytes(1024 * kGib), "1 TiB");
  EXPECT_EQ(format_bytes(-3.1 * kGib), "-3.1 GiB");
  EXPECT_EQ(format_gib(71.23 * kGib), "71.2");
}

TEST(FormatNumber, SeparatesThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1284), "1,284");
  EXPECT_EQ(format_count(-1234567), "-1,234,567");
  EXPECT_EQ(format_count(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(format_number(2470.46, 1), "2,470.5");
  EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(FormatShortCount, KeepsThreeDigits) {
  EXPECT_EQ(format_short_count(14.03e9), "14.0 B");
  EXPECT_EQ(format_short_count(125e6), "125 M");
  EXPECT_EQ(format_short_count(512), "512");
}

TEST(FormatPercent, ShowsFractionsAsPercent) { EXPECT_EQ(format_percent(0.706), "70.6 %"); }

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("2000000000", "x"), 2000000000);
  EXPECT_EQ(parse_bytes("80GiB", "x"), int64_t{80} << 30);
  EXPECT_EQ(parse_bytes("80 gb", "x"), 80000000000);
  EXPECT_EQ(parse_bytes("1.5KiB", "x"), 1536);
}

TEST(ParseSeconds, KnowsTimeUnits) {
  EXPECT_EQ(parse_seconds("90", "x"), 90);
  EXPECT_EQ(parse_seconds("1.5h", "x"), 5400);
  EXPECT_EQ(parse_seconds("10 min", "x"), 600);
}

TEST(ParseCount, TakesSeparatorsExponentsAndLetters) {
  EXPECT_EQ(parse_count("1,284", 1, 10000, "x"), 1284);
  EXPECT_EQ(parse_count("300e9", 1, int64_t{1} << 50, "x"), 300000000000);
  EXPECT_EQ(parse_count("300B", 1, int64_t{1} << 50, "x"), 300000000000);
}

class BadQuantity : public testing::TestWithParam<std::string> {};
TEST_P(BadQuantity, IsRefused) {
  EXPECT_THROW(parse_bytes(GetParam(), "x"), InputError);
  EXPECT_THROW(parse_seconds(GetParam(), "x"), InputError);
  EXPECT_THROW(parse_count(GetParam(), 0, std::numeric_limits<int64_t>::max(), "x"), InputError);
}
INSTANTIATE_TEST_SUITE_P(All, BadQuantity,
                         testing::Values("", " ", "-1", "GiB", "1 2", "1zz", "nan", "inf", "1e999", "12,84", "1 2GiB",
                                         "9e300PiB"));

RC_GTEST_PROP(FormatCount, IsTheNumberWithCommas, (int64_t count)) {
  std::string digits = format_count(count);
  std::erase(digits, ',');
  RC_ASSERT(digits == std::to_string(count));
}

RC_GTEST_PROP(ParseCount, ReadsBackWhatFormatCountWrites, ()) {
  const auto count = *rc::gen::inRange<int64_t>(0, int64_t{1} << 60);
  RC_ASSERT(parse_count(format_count(count), 0, int64_t{1} << 60, "x") == count);
}

}  // namespace
}  // namespace layline::base
