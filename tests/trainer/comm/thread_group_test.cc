#include "layline/trainer/comm/thread_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/trainer/comm/backends.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string comm_error(const std::function<void()>& body) { return message_of<CommError>(body); }

TEST(ThreadGroup, AnErrorOfOneRankEndsTheWaitsOfAllOthersInAllGroupsAtOnce) {
  const double seconds = seconds_of([] {
    const std::string message = message_of<std::invalid_argument>([] {
      run_as_threads(4, 20s, [&](GroupFactory& factory) {
        const auto world = factory.make_world();
        if (factory.rank() == 1) throw std::invalid_argument("out of memory");
        const std::string what = comm_error([&] {
          at::Tensor tensor = at::ones({3});
          if (factory.rank() == 0) factory.make("tp", {0, 1})->all_reduce(tensor);
          if (factory.rank() == 2) world->receive(tensor, 0, 0)->wait();
          if (factory.rank() == 3) world->all_gather_async(tensor, at::ones({12}))->wait();
        });
        EXPECT_THAT(what, HasSubstr("rank 1: out of memory"));
        EXPECT_THAT(comm_error([&] { world->barrier(); }), HasSubstr("rank 1: out of memory"));
      });
    });
    EXPECT_EQ(message, "out of memory");  // as it was thrown
  });
  EXPECT_LT(seconds, 2.0);
}

TEST(ThreadWorld, KeepsTheFirstFailure) {
  ThreadWorld world(3, 20s);
  EXPECT_EQ(world.failure(), "");
  world.abort(2, "disk full");
  world.abort(0, "group dp: rank 2: disk full");
  EXPECT_EQ(world.failure(), "rank 2: disk full");
  EXPECT_THAT(comm_error([&] { world.factory(1)->make("tp", {1, 2})->barrier(); }), HasSubstr("rank 2: disk full"));
}

TEST(ThreadGroup, RanksThatDoNotComeAreNamed) {
  auto groups = make_thread_groups("dp", 4, 100ms);
  std::thread other([&] { EXPECT_THAT(comm_error([&] { groups[2]->barrier(); }), HasSubstr("did not come")); });
  EXPECT_THAT(comm_error([&] { groups[0]->barrier(); }),
              HasSubstr("group dp (ranks 0, 1, 2 and 3): barrier: ranks 1 and 3 did not come within 0.1 s"));
  other.join();
  EXPECT_THAT(comm_error([&] { groups[1]->barrier(); }), HasSubstr("did not come"));
}

TEST(ThreadGroup, AMessageThatDoesNotComeIsNamed) {
  auto groups = make_thread_groups("pp", 2, 50ms);
  EXPECT_THAT(comm_error([&] { groups[1]->receive(at::ones({2}), 0, 3)->wait(); }),
              HasSubstr("receive from rank 0 by rank 1 (channel 3): rank 0 did not send within 0.05 s"));
}

TEST(ThreadGroup, AMessageThatIsNotReceivedIsNamedByFlush) {
  auto groups = make_thread_groups("pp", 2, 50ms);
  groups[0]->send(at::ones({2}), 1, 0);
  EXPECT_THAT(comm_error([&] { groups[0]->flush_sends(); }), HasSubstr("rank 1 did not receive within 0.05 s"));
}

struct Mismatch {
  const char* name;
  void (*first)(Group&);
  void (*second)(Group&);
  std::vector<std::string> words;
};
void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

class Mismatches : public testing::TestWithParam<Mismatch> {};

INSTANTIATE_TEST_SUITE_P(ThreadGroup, Mismatches,
                         testing::Values(Mismatch{"Shape",
                                                  [](Group& g) { g.all_reduce(at::ones({2, 3})); },
                                                  [](Group& g) { g.all_reduce(at::ones({3, 2})); },
                                                  {"all_reduce of [2, 3] Float", "all_reduce of [3, 2] Float"}},
                                         Mismatch{"Dtype",
                                                  [](Group& g) { g.all_reduce(at::ones({2})); },
                                                  [](Group& g) { g.all_reduce(at::ones({2}, at::kDouble)); },
                                                  {"[2] Float", "[2] Double"}},
                                         Mismatch{"Operation",
                                                  [](Group& g) { g.all_reduce(at::ones({2})); },
                                                  [](Group& g) { g.barrier(); },
                                                  {"all_reduce of [2] Float", "barrier"}},
                                         Mismatch{"Root",
                                                  [](Group& g) { g.broadcast(at::ones({2}), 0); },
                                                  [](Group& g) { g.broadcast(at::ones({2}), 1); },
                                                  {"from rank 0", "from rank 1"}},
                                         Mismatch{"Message",
                                                  [](Group& g) { g.send(at::ones({2}), 1, 0), g.flush_sends(); },
                                                  [](Group& g) { g.receive(at::ones({4}), 0, 0)->wait(); },
                                                  {"rank 5 sent [2] Float", "rank 7 expects [4] Float"}}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Mismatches, AreToldToBothRanksWithBothCalls) {
  ThreadWorld world(8, 20s);
  const auto run = [&](int64_t rank, void (*call)(Group&)) {
    const auto group = world.factory(rank)->make("tp", {5, 7});
    const std::string message = comm_error([&] { call(*group); });
    EXPECT_THAT(message, AllOf(HasSubstr("rank 5"), HasSubstr("rank 7")));
    for (const std::string& words : GetParam().words) EXPECT_THAT(message, HasSubstr(words));
  };
  std::thread first([&] { run(5, GetParam().first); });
  run(7, GetParam().second);
  first.join();
}

TEST(ThreadGroup, AnErrorUnwindsPastWhatIsPending) {
  const double seconds = seconds_of([] {
    EXPECT_THROW(run_as_threads(2, 20s,
                                [](GroupFactory& factory) {
                                  const auto world = factory.make_world();
                                  if (factory.rank() == 0) return world->barrier();
                                  const auto first = world->all_reduce_async(at::ones({3}));
                                  const auto second = world->receive(at::ones({3}), 0, 0);
                                  throw std::invalid_argument("own error");
                                }),
                 std::exception);
  });
  EXPECT_LT(seconds, 2.0);
}

TEST(ThreadGroup, SendReturnsBeforeAnyoneReceives) {
  auto groups = make_thread_groups("pp", 2, 20s);
  at::Tensor received = at::zeros({3});
  for (int i = 1; i <= 3; ++i) groups[0]->send(at::full({3}, static_cast<double>(i)), 1, 0);
  for (int i = 1; i <= 3; ++i) {
    groups[1]->receive(received, 0, 0)->wait();
    EXPECT_EQ(received[0].item<double>(), i);
  }
  groups[0]->flush_sends();
}

}  // namespace
}  // namespace layline::trainer::comm
