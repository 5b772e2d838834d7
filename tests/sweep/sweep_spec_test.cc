#include "layline/sweep/sweep_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layline/base/error.h"

namespace layline::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kBase =
    R"("base": {"model": "llama-tiny", "sequence_length": 64, "global_batch": 4, "steps": 2, "data": {"train": "corpus"}})";

SweepSpec parse(const std::string& rest) { return parse_sweep_spec("{" + kBase + ", " + rest + "}", "dir/mine.json"); }

std::string mistake(const std::string& text) {
  try {
    parse_sweep_spec(text, "mine.json");
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

std::string mistake_in(const std::string& rest) { return mistake("{" + kBase + ", " + rest + "}"); }

TEST(SweepSpec, TakesAxesAsWordsOfALayout) {
  const SweepSpec spec = parse(R"("ranks": 2, "layouts": {"tp": [1, 2], "sp": [0, 1], "ckpt": "full"})");
  EXPECT_EQ(spec.name, "mine");
  EXPECT_THAT(spec.ranks, ElementsAre(2));
  ASSERT_EQ(spec.layouts.axes.size(), 3u);
  for (const Axis& axis : spec.layouts.axes) {
    if (axis.name == "tp") {
      EXPECT_THAT(axis.words, ElementsAre("tp1", "tp2"));
    } else if (axis.name == "ckpt") {
      EXPECT_THAT(axis.words, ElementsAre("ckpt=full"));
    } else {
      EXPECT_THAT(axis.words, ElementsAre("sp0", "sp"));
    }
  }
}

TEST(SweepSpec, TakesAllLayoutsOrAList) {
  const SweepSpec all = parse(R"("ranks": [4, 1], "layouts": "all")");
  EXPECT_TRUE(all.layouts.all);
  EXPECT_THAT(all.ranks, ElementsAre(1, 4));
  const SweepSpec list = parse(R"("ranks": 1, "layouts": ["mb1", "mb2 ckpt=full"])");
  EXPECT_THAT(list.layouts.texts, ElementsAre("mb1", "mb2 ckpt=full"));
  EXPECT_THAT(list.layouts.axes, IsEmpty());
}

TEST(SweepSpec, ItsMemoryLimitIsThatOfEachRun) {
  EXPECT_EQ(parse(R"("ranks": 1, "layouts": "all", "memory_limit_bytes": 77)").base.memory_limit_bytes, 77);
}

TEST(SweepSpec, MistakesNameThePlaceAndWhatIsAllowed) {
  EXPECT_THAT(mistake_in(R"("ranks": 1, "layouts": {"tq": [1]})"), HasSubstr("tq"));
  EXPECT_THAT(mistake_in(R"("ranks": 1, "layouts": {"tp": ["x"]})"), HasSubstr("$.layouts.tp"));
  EXPECT_THAT(mistake_in(R"("ranks": 1, "layouts": ["mb1", "qq"])"), HasSubstr("$.layouts[1]"));
  EXPECT_THAT(mistake_in(R"("ranks": [], "layouts": "all")"), HasSubstr("want at least one number"));
  EXPECT_THAT(mistake_in(R"("ranks": 0, "layouts": "all")"), HasSubstr("ranks"));
  EXPECT_THAT(mistake_in(R"("ranks": 1)"), HasSubstr("layouts"));
  EXPECT_THAT(mistake_in(R"("ranks": 1, "layouts": "all", "repeat": 2)"), HasSubstr("\"repeats\""));
  EXPECT_THAT(mistake_in(R"("ranks": 1, "layouts": "all", "stop_when_slower_than_best_by": 0.5)"),
              HasSubstr("stop_when_slower_than_best_by"));
  EXPECT_THAT(mistake(R"({"ranks": 1, "layouts": "all"})"), HasSubstr("base"));
}

TEST(SweepSpec, ItsBaseHasNoLayoutMetricsOrCheckpoints) {
  for (const char* key : {R"("layout": "mb1")", R"("metrics": "m.jsonl")"}) {
    const std::string base = R"({"base": {"model": "llama-tiny", "sequence_length": 64, "global_batch": 4, "steps": 2,
                                "data": {"train": "corpus"}, )" +
                             std::string(key) + R"(}, "ranks": 1, "layouts": "all"})";
    EXPECT_THAT(mistake(base), HasSubstr("leave it out")) << key;
  }
}

}  // namespace
}  // namespace layline::sweep
