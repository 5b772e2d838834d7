#include "layline/report/sample.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "layline/runs/csv.h"

namespace layline::report {
namespace {

std::string numbered(int64_t num_rows) {
  std::string text = "number,text\n";
  for (int64_t i = 0; i < num_rows; ++i) text += std::to_string(i) + ",\"a\nb,\"\"c\"\"\"\n";
  return text;
}

RC_GTEST_PROP(SampleCsvRows, TakesSoManyDistinctRowsInOrder, ()) {
  const auto total = *rc::gen::inRange<int64_t>(0, 60);
  const auto wanted = *rc::gen::inRange<int64_t>(1, 70);
  const std::string text = numbered(total);
  RC_ASSERT(count_csv_rows(text) == total);
  const runs::CsvTable sample = runs::parse_csv(sample_csv_rows(text, wanted), "sample");
  RC_ASSERT(static_cast<int64_t>(sample.rows.size()) == std::min(total, wanted));
  int64_t last = -1;
  for (const runs::CsvRow& row : sample.rows) {
    const int64_t number = std::stoll(row.fields[0]);
    RC_ASSERT(number > last);
    RC_ASSERT(row.fields[1] == "a\nb,\"c\"");
    last = number;
  }
}

TEST(CountCsvRows, PassesOverBlankLinesAndAMissingLineEnd) {
  EXPECT_EQ(count_csv_rows(""), 0);
  EXPECT_EQ(count_csv_rows("a,b"), 0);
  EXPECT_EQ(count_csv_rows("a,b\r\n\r\n1,2\r\n3,4"), 2);
}

TEST(SampleCsvRows, SpreadsOverTheWholeText) {
  const runs::CsvTable sample = runs::parse_csv(sample_csv_rows(numbered(100), 4), "sample");
  ASSERT_EQ(sample.rows.size(), 4u);
  EXPECT_EQ(sample.rows[0].fields[0], "0");
  EXPECT_EQ(sample.rows[3].fields[0], "75");
}

}  // namespace
}  // namespace layline::report
