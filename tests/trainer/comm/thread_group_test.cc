#include "layline/trainer/comm/thread_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/trainer/comm/plain.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Error = CommError>
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ThreadGroup, AllReduceIsThePlainSumInRankOrder) {
  for (int64_t size = 1; size <= 5; ++size) {
    run_as_threads(size, 20s, [&](GroupFactory& factory) {
      const auto world = factory.make_world();
      for (const at::ScalarType dtype : summed_dtypes()) {
        at::Tensor tensor = numbers(37, dtype, factory.rank());
        world->all_reduce(tensor);
        EXPECT_TRUE(at::equal(tensor, plain_sum(numbers_of_ranks(size, 37, dtype))));
      }
    });
  }
}

TEST(ThreadGroup, AnAbortEndsTheWaitsOfAllOthersAtOnceAndNamesTheRank) {
  const double seconds = seconds_of([] {
    const std::string message = message_of<std::runtime_error>([] {
      run_as_threads(3, 20s, [&](GroupFactory& factory) {
        const auto world = factory.make_world();
        if (factory.rank() == 1) throw std::runtime_error("out of memory");
        EXPECT_THAT(message_of([&] { world->barrier(); }), HasSubstr("rank 1: out of memory"));
        EXPECT_THAT(message_of([&] { world->barrier(); }), HasSubstr("rank 1: out of memory"));
      });
    });
    EXPECT_EQ(message, "out of memory");
  });
  EXPECT_LT(seconds, 2.0);
}

TEST(ThreadGroup, ARankThatDoesNotComeIsNamed) {
  auto groups = make_thread_groups("dp", 3, 100ms);
  std::thread other([&] { EXPECT_THAT(message_of([&] { groups[2]->barrier(); }), HasSubstr("rank 1 did not come")); });
  EXPECT_THAT(message_of([&] { groups[0]->barrier(); }),
              HasSubstr("group dp (ranks 0, 1 and 2): barrier: rank 1 did not come within 0.1 s"));
  other.join();
}

TEST(ThreadGroup, MessagesKeepTheirOrderWithinAChannel) {
  run_as_threads(2, 20s, [&](GroupFactory& factory) {
    const auto world = factory.make_world();
    if (factory.rank() == 0) {
      for (int i = 0; i < 3; ++i) world->send(numbers(5, at::kFloat, 0, i), 1, i % 2);
      world->flush_sends();
    } else {
      at::Tensor first = at::empty({5}), second = at::empty({5}), third = at::empty({5});
      world->receive(second, 0, 1)->wait();
      const auto pending = world->receive(first, 0, 0);
      world->receive(third, 0, 0)->wait();
      pending->wait();
      EXPECT_TRUE(at::equal(first, numbers(5, at::kFloat, 0, 0)));
      EXPECT_TRUE(at::equal(second, numbers(5, at::kFloat, 0, 1)));
      EXPECT_TRUE(at::equal(third, numbers(5, at::kFloat, 0, 2)));
    }
  });
}

}  // namespace
}  // namespace layline::trainer::comm
