#include "layline/trainer/comm/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <chrono>

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Beat waiting(const std::string& label, int64_t group, int64_t call, int64_t num_elements, double seconds) {
  Beat beat;
  beat.label = label;
  beat.group = group;
  beat.call = call;
  beat.num_elements = num_elements;
  beat.state_seconds = seconds;
  return beat;
}

RC_GTEST_PROP(Beat, SurvivesItsText, ()) {
  Beat beat = waiting(*rc::gen::element<std::string>("", "all_reduce of dp", "send of a b c"), 3, -1, 77, 0.5);
  beat.count = *rc::gen::arbitrary<int64_t>();
  beat.is_done = *rc::gen::arbitrary<bool>();
  beat.knows_failure = *rc::gen::arbitrary<bool>();
  beat.wait_index = *rc::gen::arbitrary<int64_t>();
  const Beat back = decode(encode(beat));
  RC_ASSERT(back.label == beat.label);
  RC_ASSERT(back.count == beat.count);
  RC_ASSERT(back.is_done == beat.is_done);
  RC_ASSERT(back.knows_failure == beat.knows_failure);
  RC_ASSERT(back.wait_index == beat.wait_index);
  RC_ASSERT(back.call == -1);
  RC_ASSERT(back.num_elements == 77);
}

TEST(BeatMaker, CountsHowLongOneWaitHasLasted) {
  Activity activity;
  BeatMaker maker(&activity);
  const auto start = BeatMaker::Time{} + 1000s;
  EXPECT_EQ(maker.next(start).label, "");
  activity.begin(activity.keep("all_reduce of dp"), 1, 0, 10, 6);
  EXPECT_EQ(maker.next(start + 1s).state_seconds, 0.0);
  EXPECT_EQ(maker.next(start + 3s).state_seconds, 2.0);
  activity.end();
  activity.begin(activity.keep("all_reduce of dp"), 1, 1, 10, 6);
  EXPECT_EQ(maker.next(start + 4s).state_seconds, 0.0);
  activity.end();
  maker.next(start + 5s);
  EXPECT_EQ(maker.next(start + 7s).state_seconds, 2.0);
}

TEST(Judge, NamesTheRankWhoseBeatsStandStillAndWhatItDid) {
  Judge judge(0, 4000ms);
  std::vector<Beat> beats(3);
  const auto start = Judge::Time{} + 1000s;
  for (int i = 1; i <= 8; ++i) {
    beats[1].count = i;
    EXPECT_EQ(judge.look(beats, start + i * 500ms), "") << i;
  }
  beats[1].count = 9;
  beats[2].label = "barrier of world";
  EXPECT_THAT(judge.look(beats, start + 5000ms), HasSubstr("rank 2: no sign of life for 4.5 s"));
}

TEST(Judge, DoesNotMissRanksThatHaveEndedOrAllAfterAPauseOfItsOwn) {
  Judge judge(0, 4000ms);
  std::vector<Beat> beats(3);
  beats[2].is_done = true;
  const auto start = Judge::Time{} + 1000s;
  judge.look(beats, start);
  EXPECT_EQ(judge.look(beats, start + 60s), "");
}

TEST(Judge, NamesRanksThatWaitInDifferentCallsOfAGroup) {
  Judge judge(0, 4000ms);
  const auto now = Judge::Time{} + 1000s;
  std::vector<Beat> beats = {waiting("all_reduce of tp", 5, 17, 4, 2), waiting("all_reduce of tp", 6, 17, 8, 2),
                             waiting("all_reduce of tp", 5, 17, 3, 2)};
  EXPECT_THAT(judge.look(beats, now), HasSubstr("rank 2 is in all_reduce of tp with 3 elements"));
  EXPECT_THAT(judge.look(beats, now), HasSubstr("but rank 0 is in all_reduce of tp with 4 elements"));
  beats[2].call = 18;  // one is ahead: nothing wrong yet
  EXPECT_EQ(judge.look(beats, now), "");
  beats[2].call = 17;
  beats[2].state_seconds = 0.5;  // may be a mix of two waits
  EXPECT_EQ(judge.look(beats, now), "");
}

TEST(ExplainWait, NamesTheRanksThatDoNotWait) {
  std::vector<Beat> beats(4, waiting("barrier of world", 0, 3, 0, 300));
  beats[2] = Beat{};
  beats[2].state_seconds = 310;
  EXPECT_EQ(explain_wait(beats, 0), "rank 2 has been computing for 310 s");
  beats[2] = waiting("receive of pp", 1, -1, 4, 300);
  EXPECT_THAT(explain_wait(beats, 0), HasSubstr("all ranks wait for each other: rank 1 is in barrier of world"));
  EXPECT_THAT(explain_wait(beats, 0), HasSubstr("rank 2 is in receive of pp"));
}

}  // namespace
}  // namespace layline::trainer::comm
