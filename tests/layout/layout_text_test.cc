#include "layline/layout/layout_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layouts.h"

namespace layline::layout {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text, int64_t num_gpus = 64) {
  try {
    parse_layout(text, {.num_gpus = num_gpus});
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string canonical(std::string_view text) { return to_text(parse_layout(text, {.num_gpus = 64})); }

RC_GTEST_PROP(LayoutText, ComesBackFromItsCanonicalText, ()) {
  const Layout layout = any_layout();
  TextDefaults defaults;
  defaults.split = static_cast<SplitKind>(*rc::gen::inRange(0, 3));
  defaults.attention = static_cast<AttentionKernel>(*rc::gen::inRange(0, 4));
  const std::string text = to_text(layout, defaults);
  const Layout again = parse_layout(text, {.defaults = defaults});
  RC_ASSERT(again == layout);
  RC_ASSERT(to_text(again, defaults) == text);
}

RC_GTEST_PROP(LayoutText, DoesNotDependOnTheOrderOfWords, ()) {
  const Layout layout = any_layout();
  std::string text = to_text(layout), word, shuffled;
  std::vector<std::string> words;
  for (const char c : text + " ") {
    if (c != ' ') {
      word += c;
      continue;
    }
    words.push_back(word);
    word.clear();
  }
  std::rotate(words.begin(), words.begin() + *rc::gen::inRange<size_t>(0, words.size()), words.end());
  for (const std::string& w : words) shuffled += "  " + w + "\t";
  RC_ASSERT(parse_layout(shuffled) == layout);
}

RC_GTEST_PROP(LayoutConstraints, OfALayoutsTextMatchThatLayout, ()) {
  const Layout layout = any_layout();
  const LayoutConstraints constraints = parse_constraints(to_text(layout));
  RC_ASSERT(constraints.matches(layout));
  RC_ASSERT(to_text(constraints) == to_text(layout));
  Layout other = layout;
  ++other.pp;
  RC_ASSERT(!constraints.matches(other));
}

struct Case {
  const char* text;
  const char* canonical;
};
class CanonicalText : public testing::TestWithParam<Case> {};
TEST_P(CanonicalText, SaysAxesAlwaysAndOtherWordsOnlyWhenTheyDiffer) {
  EXPECT_EQ(canonical(GetParam().text), GetParam().canonical);
}
INSTANTIATE_TEST_SUITE_P(
    All, CanonicalText,
    testing::Values(Case{"", "dp64 tp1 pp1 mb1"}, Case{"dp32 tp2 pp1 mb1 sp zero1", "dp32 tp2 pp1 mb1 sp"},
                    Case{"sp", "dp64 tp1 pp1 mb1"}, Case{"tp2 sp0", "dp32 tp2 pp1 mb1"},
                    Case{"vp2 pp4", "dp16 tp1 pp4 mb1 vp2"},
                    Case{"pp4 vp2 sched=interleaved cp2", "dp8 tp1 pp4 mb1 cp2 vp2"},
                    Case{"pp4 vp2 sched=1f1b", "dp16 tp1 pp4 mb1 vp2 sched=1f1b"},
                    Case{"zero3 hsdp8", "dp64 tp1 pp1 mb1 hsdp8"}, Case{"hsdp8 zero3", "dp64 tp1 pp1 mb1 hsdp8"},
                    Case{"zero0 mb4", "dp64 tp1 pp1 mb4 zero0"},
                    Case{"ckpt=full:3 tp2 pp2 split=21,19 norm=unfused attn=fused-softmax sp sched=zb",
                         "dp16 tp2 pp2 mb1 sp ckpt=full:3 sched=zb split=21,19 attn=fused-softmax norm=unfused"}));

TEST(LayoutText, LeavesOutTheEnginesSplitOnly) {
  spec::Engine engine;
  engine.default_split = SplitKind::kUniform;
  engine.default_attention = AttentionKernel::kFusedSoftmax;
  const TextDefaults defaults = text_defaults(engine);
  const Layout layout = parse_layout("dp1", {.defaults = defaults});
  EXPECT_EQ(layout.split, SplitKind::kUniform);
  EXPECT_EQ(layout.attention, AttentionKernel::kFlash2);
  EXPECT_EQ(to_text(layout, defaults), "dp1 tp1 pp1 mb1");
  EXPECT_EQ(to_text(layout), "dp1 tp1 pp1 mb1 split=uniform");
}

struct Wrong {
  const char* text;
  const char* message;
};
class WrongText : public testing::TestWithParam<Wrong> {};
TEST_P(WrongText, IsRefusedWithTheWordAndWhatIsAllowed) {
  EXPECT_THAT(error_of(GetParam().text), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    All, WrongText,
    testing::Values(Wrong{"tpp2", "layout: \"tpp2\": no such word (did you mean \"tp\"?)"},
                    Wrong{"chkpt=full", "did you mean \"ckpt\"?"}, Wrong{"recomputation", "no such word (known: dp tp"},
                    Wrong{"tp2 tp2", "\"tp2\": tp is given twice"}, Wrong{"sp sp0", "sp is given twice"},
                    Wrong{"zero1 zero1", "zero is given twice"}, Wrong{"hsdp8 hsdp8", "hsdp is given twice"},
                    Wrong{"hsdp8 zero1", "zero3 only"}, Wrong{"zero1 hsdp8", "zero3 only"},
                    Wrong{"zero4", "from 0 to 3"}, Wrong{"hsdp0", "from 1"},
                    Wrong{"tp0", "\"tp0\": want a whole number from 1 to 1000000"},
                    Wrong{"tp-2", "\"tp-2\": want a whole number"}, Wrong{"tp", "\"tp\": want a whole number"},
                    Wrong{"tp2.0", "want a whole number"}, Wrong{"tp=2", "write tp2"},
                    Wrong{"mb1000001", "from 1 to 1000000"}, Wrong{"dp99999999999999999999999999", "from 1 to 1000000"},
                    Wrong{"dp1000000 tp1000000 pp1000000 cp1000000", "more than 1000000 GPUs"},
                    Wrong{"ckpt=ful", "ckpt=full"}, Wrong{"ckpt", "write ckpt=none|selective|full|full:K"},
                    Wrong{"ckpt=full:0", "from 1"}, Wrong{"ckpt=full:", "want a whole number"},
                    Wrong{"sched=2f2b", "1f1b"}, Wrong{"split=explicit", "21,19"},
                    Wrong{"split=21,,19", "want a whole number"}, Wrong{"split=21,19,", "want a whole number"},
                    Wrong{"split=21,0", "from 1"}, Wrong{"attn=flash3", "did you mean \"attn="},
                    Wrong{"norm=", "norm=fused|unfused"}, Wrong{"sp2", "write sp or sp0"}, Wrong{"2", "no such word"},
                    Wrong{"=", "no such word"}, Wrong{"tp3", "tp3 · pp1 · cp1 = 3 does not divide 64 GPUs"},
                    Wrong{"TP2", "did you mean \"tp\"?"}));

TEST(LayoutText, NeedsDpWhenTheNumberOfGpusIsUnknown) { EXPECT_THAT(error_of("tp2", 0), HasSubstr("dp is missing")); }

RC_GTEST_PROP(LayoutText, NeverFailsOtherThanWithAnInputError, (const std::string& text)) {
  try {
    parse_layout(text, {.num_gpus = 8});
  } catch (const base::InputError&) {
  }
}

TEST(LayoutConstraints, FixOnlyWhatIsWritten) {
  const LayoutConstraints constraints = parse_constraints("tp2 sp");
  Layout layout = parse_layout("dp8 tp2 sp mb4 ckpt=full");
  EXPECT_TRUE(constraints.matches(layout));
  layout.sp = false;
  EXPECT_FALSE(constraints.matches(layout));
  EXPECT_TRUE(parse_constraints("").matches(layout));
}

TEST(LayoutConstraints, TakeAnySpAtTp1BecauseItChangesNothing) {
  EXPECT_TRUE(parse_constraints("sp").matches(parse_layout("dp8")));
}

TEST(LayoutConstraints, TellHybridShardingFromZero3) {
  EXPECT_FALSE(parse_constraints("zero3").matches(parse_layout("dp16 hsdp8")));
  EXPECT_TRUE(parse_constraints("hsdp8").matches(parse_layout("dp16 hsdp8 zero3")));
  EXPECT_FALSE(parse_constraints("hsdp8").matches(parse_layout("dp16 zero3")));
}

}  // namespace
}  // namespace layline::layout
