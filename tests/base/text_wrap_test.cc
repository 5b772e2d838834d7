#include "layline/base/text_wrap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

namespace layline::base {
namespace {

TEST(Wrap, BreaksAtBlanksAndIndents) {
  EXPECT_EQ(wrap("one two three", {.width = 10}, 2), "  one two\n  three\n");
  EXPECT_EQ(wrap("", {.width = 10}, 2), "");
  EXPECT_EQ(wrap("  much   room ", {.width = 80}, 0), "much room\n");
}

TEST(Wrap, GivesAWordThatIsTooLongALineOfItsOwn) {
  EXPECT_EQ(wrap("a abcdefghijkl b", {.width = 8}, 2), "  a\n  abcdefghijkl\n  b\n");
}

RC_GTEST_PROP(Wrap, KeepsEveryWordInLinesThatFit, ()) {
  const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 12));
  std::string text;
  std::vector<std::string> words;
  for (const int length : lengths) {
    words.emplace_back(static_cast<size_t>(length), 'x');
    text += words.back() + " ";
  }
  const int width = *rc::gen::inRange(16, 60);
  const std::string wrapped = wrap(text, {.width = width}, 4);
  std::istringstream lines(wrapped), again(wrapped);
  for (std::string line; std::getline(lines, line);) RC_ASSERT(static_cast<int>(line.size()) <= width);
  std::vector<std::string> kept;
  for (std::string word; again >> word;) kept.push_back(word);
  RC_ASSERT(kept == words);
}

}  // namespace
}  // namespace layline::base
