// What holds for every kind of group, against plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <stdexcept>
#include <vector>

#include "layline/trainer/comm/thread_group.h"
#include "tests/trainer/comm/backends.h"
#include "tests/trainer/comm/plain.h"

namespace layline::trainer::comm {
namespace {

using namespace std::chrono_literals;

class Collectives : public testing::TestWithParam<Backend> {
 protected:
  // body(world) on every rank of 1 to 5.
  static void on_sizes(const std::function<void(Group&)>& body) {
    for (int64_t size = 1; size <= 5; ++size) on_ranks(size, body);
  }
  static void on_ranks(int64_t size, const std::function<void(Group&)>& body) {
    GetParam().run(size, 20s, [&](GroupFactory& factory) { body(*factory.make_world()); });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Collectives,
                         testing::Values(Backend{"threads", run_as_threads}, Backend{"gloo", run_gloo_threads}),
                         [](const auto& info) { return info.param.name; });

// Empty, one, odd, and one that Gloo's collectives divide.
const std::vector<int64_t> kLengths = {0, 1, 3, 37, 1001, 20'011};

TEST_P(Collectives, AllReduceIsThePlainSumInRankOrder) {
  on_sizes([](Group& world) {
    for (const at::ScalarType dtype : summed_dtypes()) {
      for (const int64_t length : kLengths) {
        at::Tensor tensor = numbers(length, dtype, world.rank());
        world.all_reduce(tensor);
        EXPECT_TRUE(at::equal(tensor, expected_sum(world.size(), length, dtype))) << length;
      }
    }
  });
}

TEST_P(Collectives, LongTensorsInManySegmentsAreSummedExactly) {
  on_ranks(3, [](Group& world) {
    const int64_t num = 3 * 700'001;
    at::Tensor tensor = numbers(num, at::kFloat, world.rank());
    at::Tensor part = at::empty({num / 3});
    world.reduce_scatter(tensor, part);
    world.all_reduce(tensor);
    EXPECT_TRUE(at::equal(tensor, expected_sum(3, num, at::kFloat)));
    EXPECT_TRUE(at::equal(part, tensor.narrow(0, world.rank() * num / 3, num / 3)));
  });
}

TEST_P(Collectives, AllReduceOfWholeNumbersIsExact) {
  on_ranks(3, [](Group& world) {
    at::Tensor tensor = at::full({2, 3}, (int64_t{1} << 60) + world.rank(), at::kLong);
    world.all_reduce(tensor);
    EXPECT_TRUE(at::equal(tensor, at::full({2, 3}, 3 * (int64_t{1} << 60) + 3, at::kLong)));
  });
}

TEST_P(Collectives, Bf16IsSummedInFp32AndRoundedOnce) {
  on_ranks(4, [](Group& world) {
    at::Tensor tensor = at::full({5}, world.rank() == 0 ? 256.0 : 1.0, at::kBFloat16);
    world.all_reduce(tensor);
    EXPECT_EQ(tensor[4].item<double>(), 260.0);  // one by one in bf16 it stays at 256
  });
}

TEST_P(Collectives, AllReduceMaxIsTheLargestAndKeepsNan) {
  on_sizes([](Group& world) {
    for (const int64_t length : {5, 100'003}) {
      at::Tensor tensor = numbers(length, at::kFloat, world.rank());
      at::Tensor expected = numbers(length, at::kFloat, 0);
      for (int64_t rank = 1; rank < world.size(); ++rank) {
        expected = at::maximum(expected, numbers(length, at::kFloat, rank));
      }
      world.all_reduce_max(tensor);
      EXPECT_TRUE(at::equal(tensor, expected));
    }
    at::Tensor tensor = at::full({2}, world.rank() == 0 ? std::numeric_limits<double>::quiet_NaN() : 1.0, at::kDouble);
    world.all_reduce_max(tensor);
    EXPECT_TRUE(at::isnan(tensor).all().item<bool>());
  });
}

TEST_P(Collectives, ReduceScatterGivesEachRankItsPartOfThePlainSum) {
  on_sizes([](Group& world) {
    for (const at::ScalarType dtype : summed_dtypes()) {
      for (const int64_t length : kLengths) {
        const at::Tensor input = numbers(length * world.size(), dtype, world.rank());
        const at::Tensor before = input.clone();
        at::Tensor output = at::full({length}, -7.0, at::TensorOptions(dtype));
        world.reduce_scatter(input, output);
        const at::Tensor sum = expected_sum(world.size(), length * world.size(), dtype);
        EXPECT_TRUE(at::equal(output, sum.narrow(0, world.rank() * length, length))) << length;
        EXPECT_TRUE(at::equal(input, before));
      }
    }
  });
}

TEST_P(Collectives, ReduceScatterWritesIntoItsOwnPartOfTheInputAndLeavesTheRest) {
  on_sizes([](Group& world) {
    for (const int64_t length : kLengths) {
      const at::Tensor input = numbers(length * world.size(), at::kFloat, world.rank());
      at::Tensor expected = input.clone();
      const auto own = [&](const at::Tensor& tensor) { return tensor.narrow(0, world.rank() * length, length); };
      own(expected).copy_(own(expected_sum(world.size(), length * world.size(), at::kFloat)));
      world.reduce_scatter_async(input, own(input))->wait();
      EXPECT_TRUE(at::equal(input, expected)) << length;
    }
  });
}

TEST_P(Collectives, AllGatherPutsTheInputsInRankOrder) {
  on_sizes([](Group& world) {
    for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16, at::kLong, at::kByte}) {
      for (const int64_t length : kLengths) {
        at::Tensor output = at::zeros({length * world.size()}, at::TensorOptions(dtype));
        world.all_gather(numbers(length, dtype, world.rank()), output);
        EXPECT_TRUE(at::equal(output, at::cat(numbers_of_ranks(world.size(), length, dtype))));
      }
    }
  });
}

TEST_P(Collectives, AllGatherTakesItsInputFromItsOwnOutput) {
  on_sizes([](Group& world) {
    at::Tensor output = at::zeros({7 * world.size()});
    at::Tensor own = output.narrow(0, 7 * world.rank(), 7);
    own.copy_(numbers(7, at::kFloat, world.rank()));
    world.all_gather(own, output);
    EXPECT_TRUE(at::equal(output, at::cat(numbers_of_ranks(world.size(), 7, at::kFloat))));
  });
}

TEST_P(Collectives, BroadcastGivesAllTheRootsTensor) {
  on_sizes([](Group& world) {
    for (int64_t root = 0; root < world.size(); ++root) {
      at::Tensor tensor = numbers(1001, at::kBFloat16, world.rank());
      world.broadcast(tensor, root);
      EXPECT_TRUE(at::equal(tensor, numbers(1001, at::kBFloat16, root)));
    }
  });
}

TEST_P(Collectives, AsynchronousOnesMayOverlapAndEndInAnyOrder) {
  on_ranks(3, [](Group& world) {
    at::Tensor reduced = numbers(5001, at::kFloat, world.rank(), 1);
    const at::Tensor input = numbers(3 * 77, at::kBFloat16, world.rank(), 2);
    at::Tensor scattered = at::empty({77}, at::kBFloat16);
    at::Tensor gathered = at::empty({3 * 5}, at::kDouble);
    at::Tensor between = numbers(9, at::kFloat, world.rank(), 4);
    const auto first = world.all_reduce_async(reduced);
    const auto second = world.reduce_scatter_async(input, scattered);
    const auto third = world.all_gather_async(numbers(5, at::kDouble, world.rank(), 3), gathered);
    world.all_reduce(between);
    for (const auto* pending : {&third, &first, &second}) (*pending)->wait();
    EXPECT_TRUE(at::equal(reduced, expected_sum(3, 5001, at::kFloat, 1)));
    EXPECT_TRUE(at::equal(scattered, expected_sum(3, 3 * 77, at::kBFloat16, 2).narrow(0, world.rank() * 77, 77)));
    EXPECT_TRUE(at::equal(gathered, at::cat(numbers_of_ranks(3, 5, at::kDouble, 3))));
    EXPECT_TRUE(at::equal(between, expected_sum(3, 9, at::kFloat, 4)));
  });
}

TEST_P(Collectives, APendingThatIsDroppedHasWaited) {
  on_ranks(2, [](Group& world) {
    at::Tensor tensor = numbers(1001, at::kFloat, world.rank());
    world.all_reduce_async(tensor);
    EXPECT_TRUE(at::equal(tensor, expected_sum(2, 1001, at::kFloat)));
  });
}

TEST_P(Collectives, ManySmallOnesInARowKeepTheirOrder) {
  on_ranks(4, [](Group& world) {
    for (int64_t i = 0; i < 200; ++i) {
      at::Tensor tensor = at::full({3}, static_cast<double>(world.rank() * 1000 + i), at::kDouble);
      world.all_reduce(tensor);
      ASSERT_EQ(tensor[0].item<double>(), 6000.0 + 4 * static_cast<double>(i));
    }
  });
}

TEST_P(Collectives, SubgroupsOfAGridRunAtTheSameTime) {
  GetParam().run(4, 20s, [](GroupFactory& factory) {
    const int64_t row = factory.rank() / 2, column = factory.rank() % 2;
    const auto tp = factory.make("tp", {2 * row, 2 * row + 1});
    const auto dp = factory.make("dp", {column, 2 + column});
    EXPECT_EQ(tp->rank(), column);
    EXPECT_EQ(dp->rank(), row);
    for (int i = 0; i < 20; ++i) {
      at::Tensor over_dp = at::full({2}, static_cast<double>(factory.rank()), at::kDouble);
      at::Tensor over_tp = over_dp.clone();
      const auto pending = dp->all_reduce_async(over_dp);
      tp->all_reduce(over_tp);
      pending->wait();
      ASSERT_EQ(over_tp[0].item<double>(), static_cast<double>(4 * row + 1));
      ASSERT_EQ(over_dp[0].item<double>(), static_cast<double>(2 * column + 2));
    }
  });
}

TEST_P(Collectives, AGroupMadeTwiceWorksTwice) {
  GetParam().run(2, 20s, [](GroupFactory& factory) {
    for (int i = 0; i < 2; ++i) {
      const auto group = factory.make("dp", {1, 0});
      EXPECT_EQ(group->rank(), 1 - factory.rank());
      at::Tensor tensor = at::ones({3});
      group->all_reduce(tensor);
      EXPECT_EQ(tensor[0].item<double>(), 2.0);
    }
  });
}

TEST_P(Collectives, MessagesOfAChannelKeepTheirOrderAndChannelsAreIndependent) {
  on_ranks(2, [](Group& world) {
    if (world.rank() == 0) {
      for (int i = 0; i < 60; ++i) world.send(numbers(5, at::kFloat, 0, i), 1, i % 3);
      world.flush_sends();
    } else {
      for (const int channel : {2, 0, 1}) {
        for (int i = channel; i < 60; i += 3) {
          at::Tensor tensor = at::empty({5});
          world.receive(tensor, 0, channel)->wait();
          ASSERT_TRUE(at::equal(tensor, numbers(5, at::kFloat, 0, i))) << channel << " " << i;
        }
      }
    }
  });
}

TEST_P(Collectives, ReceivesMatchInTheOrderInWhichTheyArePosted) {
  on_ranks(2, [](Group& world) {
    const int64_t peer = 1 - world.rank();
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < 5; ++i) {
      tensors.push_back(at::empty({3}, at::kDouble));
      pending.push_back(world.receive(tensors.back(), peer, 0));
    }
    for (int i = 0; i < 5; ++i) world.send(numbers(3, at::kDouble, world.rank(), i), peer, 0);
    for (int i = 4; i >= 0; --i) {
      pending[i]->wait();
      EXPECT_TRUE(at::equal(tensors[i], numbers(3, at::kDouble, peer, i)));
    }
    world.flush_sends();
  });
}

TEST_P(Collectives, LongMessagesCrossWithoutADeadlock) {
  on_ranks(3, [](Group& world) {
    const int64_t next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    const at::Tensor sent = at::full({1 << 21}, static_cast<double>(world.rank()), at::kFloat);
    world.send(sent, next, 0);
    world.send(sent, previous, 1);
    at::Tensor received = at::empty({1 << 21});
    for (const auto& [peer, channel] : {std::pair{previous, 0}, std::pair{next, 1}}) {
      world.receive(received, peer, channel)->wait();
      EXPECT_EQ(received.min().item<double>(), static_cast<double>(peer));
      EXPECT_EQ(received.max().item<double>(), static_cast<double>(peer));
    }
    world.flush_sends();
  });
}

TEST_P(Collectives, AGroupOfOneWorksOnAnyDevice) {
  on_ranks(1, [](Group& world) {
    const at::Tensor whole = at::empty({5}, at::TensorOptions(at::kMeta)), part = at::empty_like(whole);
    world.all_reduce(whole);
    world.reduce_scatter(whole, part);
    world.all_gather_async(part, whole)->wait();
    world.broadcast(whole, 0);
  });
}

TEST_P(Collectives, TensorsThatWouldLoseDataAreRefused) {
  on_ranks(2, [](Group& world) {
    EXPECT_THROW(world.all_reduce(at::ones({4, 4}).t()), std::logic_error);
    EXPECT_THROW(world.all_reduce(at::ones({4}, at::kBool)), std::logic_error);
    EXPECT_THROW(world.reduce_scatter(at::ones({5}), at::ones({2})), std::logic_error);
    EXPECT_THROW(world.all_gather(at::ones({2}), at::ones({4}, at::kDouble)), std::logic_error);
    EXPECT_THROW(world.broadcast(at::ones({2}), 2), std::logic_error);
    EXPECT_THROW(world.all_reduce(at::ones({2}, at::TensorOptions(at::kMeta))), std::logic_error);
    world.barrier();
  });
}

}  // namespace
}  // namespace layline::trainer::comm
