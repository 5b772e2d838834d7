#include "layline/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace layline::base {
namespace {

using std::chrono::milliseconds;

struct CountingSink : ProgressSink {
  void show(const ProgressState& state) override {
    ++num_shown;
    last_done = state.num_done;
  }
  void finish() override { ++num_finished; }
  int num_shown = 0, num_finished = 0;
  int64_t last_done = 0;
};

TEST(Progress, IsSilentWhileWorkIsShort) {
  CountingSink sink;
  {
    Progress progress(&sink, "working", 100);
    for (int i = 0; i < 100; ++i) progress.advance();
  }
  EXPECT_EQ(sink.num_shown, 0);
  EXPECT_EQ(sink.num_finished, 1);
}

TEST(Progress, SpeaksSeldomOfLongWork) {
  CountingSink sink;
  Progress progress(&sink, "working", 0, milliseconds(0));
  for (int i = 0; i < 100'000; ++i) progress.advance();
  EXPECT_GE(sink.num_shown, 1);
  EXPECT_LT(sink.num_shown, 100);
}

TEST(Progress, CountsFromManyThreads) {
  CountingSink sink;
  Progress progress(&sink, "working", 4000, milliseconds(0));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) progress.advance();
    });
  }
  threads.clear();
  std::this_thread::sleep_for(milliseconds(150));
  progress.advance(0);
  EXPECT_EQ(sink.last_done, 4000);
}

TEST(Progress, NeedsNoSink) {
  Progress progress(nullptr, "working", 1);
  progress.advance();
}

TEST(ProgressText, SaysHowFarAndHowLong) {
  const ProgressState state{"sweeping", 30, 60, 360, "best dp2"};
  EXPECT_EQ(progress_text(state, {.width = 100, .unicode = false}),
            "sweeping  30 of 60  ##########..........  about 6 min left  best dp2");
  EXPECT_EQ(progress_text({"reading", 1284, 0, 2, ""}, {}), "reading  1,284");
  EXPECT_LE(display_width(progress_text(state, {.width = 30})), 30);
}

TEST(ProgressLine, WipesItselfOnlyIfItWasShown) {
  std::string written;
  ProgressLine line([&](std::string_view text) { written += text; }, {.width = 80, .unicode = false});
  line.finish();
  EXPECT_EQ(written, "");
  line.show({"working", 1, 2, 1, ""});
  line.finish();
  EXPECT_TRUE(written.starts_with("\rworking  1 of 2"));
  EXPECT_TRUE(written.ends_with("\r\x1b[K"));
}

}  // namespace
}  // namespace layline::base
