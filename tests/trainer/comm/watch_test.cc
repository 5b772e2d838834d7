// Processes that fail in every way, and what the others learn of it. The board's own rules are in board_test.cc.
#include "layline/trainer/comm/watch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "layline/trainer/comm/gloo_group.h"
#include "tests/trainer/comm/forked_ranks.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

struct Limits {
  std::chrono::milliseconds wait = 20s;
  std::chrono::milliseconds stale = 4s;
};

// A run as an app makes it. body trains; what is returned is what an app would print, with "own: " for the one rank
// that should print it.
std::string run_rank(int64_t rank, int64_t size, int port, const Limits& limits,
                     const std::function<void(GlooFactory&)>& body) {
  RunStore store({.rank = rank, .world_size = size, .host = "127.0.0.1", .port = port, .timeout = 10s});
  Activity activity;
  GlooFactory factory(store.store(), rank, size,
                      {.timeout = limits.wait + 10s, .address = "127.0.0.1", .activity = &activity});
  Watch watch(store,
              {.wait_limit = limits.wait, .interval = limits.stale / 8, .stale_after = limits.stale, .grace = 500ms},
              &activity, [&](const Failure& failure) { factory.abort(failure.message); });
  Failure failure;
  try {
    body(factory);
    factory.make_world()->barrier();
    failure = watch.finish();
  } catch (const CommError& error) {
    failure = watch.report_loss(error.what());
  } catch (const std::exception& error) {
    failure = watch.report(error.what());
  }
  if (failure.message.empty()) return "well";
  return (failure.is_own ? "own: " : "") + failure.message;
}

// Steps for ever, as training does.
void train(GlooFactory& factory) {
  const auto world = factory.make_world();
  for (at::Tensor tensor = at::ones({1000});;) {
    world->all_reduce(tensor);
    tensor.fill_(1);
    std::this_thread::sleep_for(5ms);
  }
}

TEST(Watch, RanksThatEndWellAreLeftAlone) {
  ForkedRanks ranks(3, [](int64_t rank, int port) {
    return run_rank(rank, 3, port, {}, [&](GlooFactory& factory) {
      const auto world = factory.make_world();
      for (int i = 0; i < 100; ++i) {
        at::Tensor tensor = at::full({7}, static_cast<double>(rank));
        world->all_reduce(tensor);
        if (tensor[6].item<double>() != 3.0) throw std::logic_error("wrong sum");
      }
      std::this_thread::sleep_for(rank * 200ms);
    });
  });
  for (int64_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.wait(rank).text, "well");
}

class LostRank : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Watch, LostRank, testing::Values(0, 2),
                         [](const auto& info) { return "Rank" + std::to_string(info.param); });

TEST_P(LostRank, OwnErrorIsWhatAllOthersGiveAsTheReason) {
  ForkedRanks ranks(3, [](int64_t rank, int port) {
    return run_rank(rank, 3, port, {}, [&](GlooFactory& factory) {
      if (rank == GetParam()) {
        std::this_thread::sleep_for(200ms);
        throw std::runtime_error("out of memory");
      }
      train(factory);
    });
  });
  const std::string reason = "rank " + std::to_string(GetParam()) + ": out of memory";
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto outcome = ranks.wait(rank);
    EXPECT_EQ(outcome.text, (rank == GetParam() ? "own: " : "") + reason);
    EXPECT_LT(outcome.seconds, 5.0);
  }
}

// Signals the lost rank and expects all others to give a reason with these words, one of them as its own.
void expect_named(ForkedRanks& ranks, int64_t victim, int signal, const std::string& words) {
  std::this_thread::sleep_for(600ms);
  ranks.signal(victim, signal);
  int num_printing = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const auto outcome = ranks.wait(rank);
    EXPECT_TRUE(outcome.exited);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank " + std::to_string(victim)), HasSubstr(words))) << rank;
    EXPECT_LT(outcome.seconds, 5.0);
    num_printing += outcome.text.starts_with("own: ");
  }
  EXPECT_EQ(num_printing, 1);
}

TEST_P(LostRank, KilledIsNamedByAllOthersWithinSeconds) {
  ForkedRanks ranks(3, [](int64_t rank, int port) { return run_rank(rank, 3, port, {}, train); });
  expect_named(ranks, GetParam(), SIGKILL, "closed");
}

TEST_P(LostRank, StoppedIsNamedByAllOthers) {
  ForkedRanks ranks(3, [](int64_t rank, int port) { return run_rank(rank, 3, port, {.stale = 800ms}, train); });
  expect_named(ranks, GetParam(), SIGSTOP, "no sign of life");
}

TEST(Watch, ARankThatComputesForEverIsNamedAfterTheWaitLimit) {
  ForkedRanks ranks(3, [](int64_t rank, int port) {
    return run_rank(rank, 3, port, {.wait = 1s, .stale = 800ms}, [&](GlooFactory& factory) {
      if (rank == 1) std::this_thread::sleep_for(20s);
      factory.make_world()->barrier();
    });
  });
  for (const int64_t rank : {0, 2}) {
    const auto outcome = ranks.wait(rank, 10);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("has waited 1 s in barrier of world"),
                                    HasSubstr("rank 1 has been computing for"), testing::Not(HasSubstr("rank 2 is"))));
    EXPECT_LT(outcome.seconds, 4.0);
  }
}

TEST(Watch, RanksInDifferentCallsAreNamedLongBeforeTheWaitLimit) {
  ForkedRanks ranks(2, [](int64_t rank, int port) {
    return run_rank(rank, 2, port, {},
                    [&](GlooFactory& factory) { factory.make_world()->all_reduce(at::ones({rank == 0 ? 3 : 4})); });
  });
  for (const int64_t rank : {0, 1}) {
    const auto outcome = ranks.wait(rank, 10);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 is in all_reduce of world with 4 elements of Float"),
                                    HasSubstr("rank 0 is in all_reduce of world with 3 elements of Float")));
    EXPECT_LT(outcome.seconds, 5.0);
  }
}

}  // namespace
}  // namespace layline::trainer::comm
