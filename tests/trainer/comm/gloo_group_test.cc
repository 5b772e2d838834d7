#include "layline/trainer/comm/gloo_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "layline/trainer/comm/rendezvous.h"
#include "tests/trainer/comm/backends.h"
#include "tests/trainer/comm/forked_ranks.h"
#include "tests/trainer/comm/plain.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

GlooFactory& gloo(GroupFactory& factory) { return dynamic_cast<GlooFactory&>(factory); }

// As run_gloo_threads, for ranks that end with a failure.
void run_failing(int64_t size, std::chrono::milliseconds timeout, const RankBody& body) {
  message_of<CommError>([&] { run_gloo_threads(size, timeout, body); });
}

TEST(GlooGroup, ARankThatDoesNotComeIsNamedWithGroupAndCall) {
  run_failing(3, 300ms, [](GroupFactory& factory) {
    if (factory.rank() != 0) return std::this_thread::sleep_for(600ms);
    const auto dp = factory.make("dp", {0, 1});
    EXPECT_THAT(message_of<CommError>([&] { dp->all_reduce(at::ones({4, 2})); }),
                AllOf(HasSubstr("group dp (ranks 0 and 1): all_reduce of [4, 2] Float"),
                      HasSubstr("rank 1 did not come within 0.3 s")));
  });
}

TEST(GlooGroup, AbortEndsTheWaitsOfAllGroupsAtOnceWithItsReason) {
  const double seconds = seconds_of([] {
    run_failing(2, 20s, [](GroupFactory& factory) {
      if (factory.rank() == 1) return std::this_thread::sleep_for(800ms);
      const auto dp = factory.make("dp", {0, 1}), tp = factory.make("tp", {0, 1});
      at::Tensor tensor = at::ones({3}), received = at::ones({3});
      const auto reduced = dp->all_reduce_async(tensor);
      const auto message = tp->receive(received, 1, 0);
      std::thread watch([&] {
        std::this_thread::sleep_for(100ms);
        gloo(factory).abort("rank 7: out of memory");
      });
      EXPECT_THAT(message_of<CommError>([&] { message->wait(); }),
                  AllOf(HasSubstr("group tp (ranks 0 and 1): receive"), HasSubstr("rank 7: out of memory")));
      watch.join();
      EXPECT_THAT(message_of<CommError>([&] { reduced->wait(); }), HasSubstr("rank 7: out of memory"));
      EXPECT_THAT(message_of<CommError>([&] { tp->barrier(); }), HasSubstr("rank 7: out of memory"));
    });
  });
  EXPECT_LT(seconds, 3.0);
}

TEST(GlooGroup, AnErrorUnwindsPastWhatIsPending) {
  const double seconds = seconds_of([] {
    EXPECT_EQ(message_of<std::invalid_argument>([] {
                run_gloo_threads(2, 20s, [](GroupFactory& factory) {
                  const auto world = factory.make_world();
                  const at::Tensor tensor = at::ones({1 << 20});
                  if (factory.rank() == 1) {
                    const auto reduced = world->all_reduce_async(tensor.clone());
                    world->send(tensor, 0, 0);
                    const auto received = world->receive(tensor.clone(), 0, 0);
                    throw std::invalid_argument("own error");
                  }
                  world->barrier();
                });
              }),
              "own error");
  });
  EXPECT_LT(seconds, 3.0);
}

TEST(GlooGroup, ASendThatFailsIsToldByTheNextCallAndNames) {
  run_failing(2, 300ms, [](GroupFactory& factory) {
    const auto pp = factory.make("pp", {0, 1});
    if (factory.rank() == 1) return std::this_thread::sleep_for(700ms);
    pp->send(at::ones({1 << 22}), 1, 2);
    EXPECT_THAT(
        message_of<CommError>([&] { pp->flush_sends(); }),
        AllOf(HasSubstr("group pp (ranks 0 and 1): send of [4194304] Float"), HasSubstr("rank 1 did not come")));
    EXPECT_THAT(message_of<CommError>([&] { factory.make("tp", {0})->barrier(); }), HasSubstr("nothing"));
    EXPECT_THAT(message_of<CommError>([&] { pp->barrier(); }), HasSubstr("send of [4194304] Float"));
  });
}

TEST(GlooGroup, CallsThatDifferInSizeRunIntoTheTimeoutInsteadOfEndingTheProcess) {
  run_failing(2, 300ms, [](GroupFactory& factory) {
    const auto world = factory.make_world();
    const std::string message = message_of<CommError>([&] { world->all_reduce(at::ones({3 + factory.rank()})); });
    EXPECT_THAT(message, testing::AnyOf(HasSubstr("did not come within 0.3 s"), HasSubstr("closed")));
  });
}

TEST(GlooGroup, ActivitySaysWhatIsWaitedForAndEnds) {
  Activity activities[2];
  const c10::intrusive_ptr<c10d::Store> store = make_process_store();
  std::thread late([&] {
    GlooFactory factory(store, 1, 2, {.activity = &activities[1]});
    const auto dp = factory.make("dp", {0, 1});
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(activities[0].now().label, std::string("all_reduce of dp"));
    EXPECT_EQ(activities[0].now().num_elements, 5);
    EXPECT_EQ(activities[0].now().call, 0);
    EXPECT_EQ(activities[1].now().label, nullptr);
    dp->all_reduce(at::ones({5}));
    dp->barrier();
  });
  GlooFactory factory(store, 0, 2, {.activity = &activities[0]});
  const auto dp = factory.make("dp", {0, 1});
  dp->all_reduce(at::ones({5}));
  EXPECT_EQ(activities[0].now().label, nullptr);
  dp->barrier();
  late.join();
}

TEST(GlooGroup, ProcessesOverTcpGetThePlainResults) {
  constexpr int64_t kSize = 3;
  ForkedRanks ranks(kSize, [](int64_t rank, int port) -> std::string {
    RunStore store({.rank = rank, .world_size = kSize, .host = "127.0.0.1", .port = port, .timeout = 10s});
    GlooFactory factory(store.store(), rank, kSize, {.timeout = 10s, .address = store.address()});
    const auto world = factory.make_world();
    std::string wrong;
    for (const at::ScalarType dtype : summed_dtypes()) {
      const int64_t num = int64_t{3} * 100'003;
      const at::Tensor sum = plain_sum(numbers_of_ranks(kSize, num, dtype));
      at::Tensor reduced = numbers(num, dtype, rank);
      at::Tensor scattered = at::empty({num / kSize}, dtype), gathered = at::empty({num}, dtype);
      world->reduce_scatter(reduced, scattered);
      world->all_gather(scattered, gathered);
      world->all_reduce(reduced);
      if (!at::equal(reduced, sum)) wrong += " all_reduce";
      if (!at::equal(gathered, sum)) wrong += " reduce_scatter or all_gather";
      world->send(sum, (rank + 1) % kSize, 3);
      world->receive(gathered.fill_(0), (rank + 2) % kSize, 3)->wait();
      if (!at::equal(gathered, sum)) wrong += " message";
      world->flush_sends();
    }
    world->barrier();
    return wrong;
  });
  for (int64_t rank = 0; rank < kSize; ++rank) {
    const auto outcome = ranks.wait(rank);
    EXPECT_TRUE(outcome.exited);
    EXPECT_EQ(outcome.text, "");
  }
}

}  // namespace
}  // namespace layline::trainer::comm
