#include "layline/base/number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "layline/base/error.h"

namespace layline::base {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_whole_number(text, 1, 1000, "--gpus");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ParseWholeNumber, TakesNumbersInRange) {
  EXPECT_EQ(parse_whole_number("1000", 1, 1000, "x"), 1000);
  EXPECT_EQ(parse_whole_number("-5", -5, 5, "x"), -5);
  EXPECT_EQ(parse_whole_number("+5", -5, 5, "x"), 5);
  EXPECT_EQ(parse_whole_number("8.0", 1, 8, "x"), 8);
}

TEST(ParseWholeNumber, SaysWhereWhatAndWhatIsAllowed) {
  EXPECT_EQ(error_of("1001"), "--gpus: found \"1001\", want a whole number from 1 to 1000");
}

class NotAWholeNumber : public testing::TestWithParam<std::string> {};
TEST_P(NotAWholeNumber, IsRefused) { EXPECT_NE(error_of(GetParam()), "") << GetParam(); }
INSTANTIATE_TEST_SUITE_P(All, NotAWholeNumber,
                         testing::Values("", " 1", "1 ", "1.5", "1.", ".0", "1e2", "0x10", "nan", "+-1", "--1", "1,000",
                                         "9223372036854775808", "99999999999999999999999", "٣"));

class NotANumber : public testing::TestWithParam<std::string> {};
TEST_P(NotANumber, IsRefused) { EXPECT_THROW(parse_number(GetParam(), -1e300, 1e300, "x"), InputError); }
INSTANTIATE_TEST_SUITE_P(All, NotANumber,
                         testing::Values("", " ", "nan", "inf", "-inf", "1e999", "1e300x", "1,5", "0x1p3", "1e301"));

TEST(ParseNumber, TakesExponents) {
  EXPECT_EQ(parse_number("300e9", 0, 1e15, "x"), 3e11);
  EXPECT_EQ(parse_number("+.5", 0, 1, "x"), 0.5);
}

}  // namespace
}  // namespace layline::base
