#include "layline/trainer/comm/thread_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/trainer/comm/backends.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ThreadGroup, AnAbortEndsTheWaitsOfAllOthersAtOnceAndNamesTheRank) {
  const double seconds = seconds_of([] {
    const std::string message = message_of<std::runtime_error>([] {
      run_as_threads(3, 20s, [&](GroupFactory& factory) {
        const auto world = factory.make_world();
        if (factory.rank() == 1) throw std::runtime_error("out of memory");
        EXPECT_THAT(message_of<CommError>([&] { world->barrier(); }), HasSubstr("rank 1: out of memory"));
        EXPECT_THAT(message_of<CommError>([&] { world->barrier(); }), HasSubstr("rank 1: out of memory"));
      });
    });
    EXPECT_EQ(message, "out of memory");
  });
  EXPECT_LT(seconds, 2.0);
}

TEST(ThreadGroup, ARankThatDoesNotComeIsNamed) {
  auto groups = make_thread_groups("dp", 3, 100ms);
  std::thread other(
      [&] { EXPECT_THAT(message_of<CommError>([&] { groups[2]->barrier(); }), HasSubstr("rank 1 did not come")); });
  EXPECT_THAT(message_of<CommError>([&] { groups[0]->barrier(); }),
              HasSubstr("group dp (ranks 0, 1 and 2): barrier: rank 1 did not come within 0.1 s"));
  other.join();
}

}  // namespace
}  // namespace layline::trainer::comm
