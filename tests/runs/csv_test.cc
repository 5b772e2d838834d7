#include "layline/runs/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "layline/base/error.h"

namespace layline::runs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> only_row(std::string_view text) {
  const CsvTable table = parse_csv(text, "t.csv");
  EXPECT_EQ(table.rows.size(), 1u);
  return table.rows.empty() ? std::vector<std::string>{} : table.rows[0].fields;
}

std::string error_of(std::string_view text) {
  try {
    parse_csv(text, "t.csv");
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, KeepsCommasQuotesAndLineEndsInsideQuotes) {
  EXPECT_THAT(only_row("a,b,c\n\"1,2\",\"say \"\"hi\"\"\",\"two\nlines\"\n"),
              ElementsAre("1,2", "say \"hi\"", "two\nlines"));
}

TEST(Csv, ReadsCarriageReturnsByteOrderMarksAndAMissingLastLineEnd) {
  EXPECT_THAT(only_row("\xEF\xBB\xBF"
                       "a,b\r\n1,2\r\n"),
              ElementsAre("1", "2"));
  EXPECT_THAT(only_row("a,b\n1,"), ElementsAre("1", ""));
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a,b\r\n1,2",
                      "t")
                .header.front(),
            "a");
}

TEST(Csv, KeepsBlanksBesideCommas) { EXPECT_THAT(only_row("a,b\n x , y \n"), ElementsAre(" x ", " y ")); }

TEST(Csv, KnowsTheLineWhereARowBegins) {
  const CsvTable table = parse_csv("a,b\n\n1,\"x\ny\nz\"\n\n2,w\n", "t.csv");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].line, 3);
  EXPECT_EQ(table.rows[1].line, 7);
}

struct BadText {
  std::string name, text, message;
};
void PrintTo(const BadText& value, std::ostream* out) { *out << value.name; }

class MalformedCsv : public testing::TestWithParam<BadText> {};

TEST_P(MalformedCsv, IsRefusedWithItsPosition) {
  EXPECT_THAT(error_of(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedCsv,
    testing::Values(BadText{"Empty", "", "t.csv: the file is empty"},
                    BadText{"OnlyBlankLines", "\n\r\n", "t.csv: the file is empty"},
                    BadText{"DuplicateColumn", "a,b,a\n", "t.csv:1: column \"a\" is there twice"},
                    BadText{"UnnamedColumn", "a,,c\n", "t.csv:1: column 2 has no name"},
                    BadText{"TooFewFields", "a,b\n1,2\n3\n", "t.csv:3: 1 fields, but the header has 2"},
                    BadText{"TooManyFields", "a,b\n1,2,3\n", "t.csv:2: 3 fields, but the header has 2"},
                    BadText{"UnterminatedQuote", "a,b\n1,2\n3,\"x\ny\n", "t.csv:3: the quote that opens here"},
                    BadText{"QuoteInsideAField", "a,b\n1,x\"y\n", "t.csv:2: a quote inside a field"},
                    BadText{"TextAfterAQuotedField", "a,b\n1,\"x\"y\n", "t.csv:2: a quote inside a field"},
                    BadText{"NulByte", std::string("a,b\n1,\0\n", 8), "t.csv:2: a NUL byte"}),
    [](const auto& info) { return info.param.name; });

// Text of the characters that matter to CSV.
rc::Gen<std::string> field_text() {
  return rc::gen::container<std::string>(rc::gen::element('a', ' ', ',', '"', '\n', '\r', ';', '\t', '\xC3', '\xA9'));
}

TEST(Csv, KeepsAByteOrderMarkThatIsPartOfAField) {
  const CsvTable table = parse_csv(
      "\n\xEF\xBB\xBF"
      "a,b\n1,2\n",
      "t.csv");
  EXPECT_EQ(parse_csv(format_csv(table), "t.csv").header, table.header);
}

RC_GTEST_PROP(Csv, ReadsBackWhateverItWrites, ()) {
  const auto num_columns = static_cast<size_t>(*rc::gen::inRange(1, 6));
  CsvTable table;
  for (size_t i = 0; i < num_columns; ++i) table.header.push_back("c" + std::to_string(i));
  for (int row = *rc::gen::inRange(0, 5); row > 0; --row) {
    table.rows.push_back({0, *rc::gen::container<std::vector<std::string>>(num_columns, field_text())});
  }
  const std::string text = format_csv(table);
  const CsvTable read = parse_csv(text, "t.csv");
  RC_ASSERT(read.header == table.header);
  RC_ASSERT(read.rows.size() == table.rows.size());
  for (size_t i = 0; i < read.rows.size(); ++i) RC_ASSERT(read.rows[i].fields == table.rows[i].fields);
  RC_ASSERT(format_csv(read) == text);
}

RC_GTEST_PROP(Csv, ParsesOrRefusesAnyTextWithoutLosingBytes, (const std::string& noise)) {
  const std::string text = "a,b\n" + noise;
  try {
    for (const CsvRow& row : parse_csv(text, "t.csv").rows) RC_ASSERT(row.fields.size() == 2u);
  } catch (const base::InputError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("t.csv:"));
  }
}

}  // namespace
}  // namespace layline::runs
