#include "layline/trainer/data/sample_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace layline::trainer::data::test {
namespace {

std::vector<int64_t> epoch_of(const SampleOrder& order, int64_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < order.num_samples(); ++i) {
    const SourceSample found = order.source_sample(epoch * order.num_samples() + i);
    EXPECT_EQ(found.epoch, epoch);
    samples.push_back(found.sample);
  }
  return samples;
}

std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<int64_t> first_numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(SampleOrder, ReadsEachSampleOnceAnEpochForAllSmallSizes) {
  for (int64_t size = 1; size <= 300; ++size) {
    for (const int64_t epoch : {int64_t{0}, int64_t{1}, int64_t{1000}}) {
      ASSERT_EQ(sorted(epoch_of(SampleOrder(size, Order::kShuffled, 7), epoch)), first_numbers(size)) << size;
    }
  }
}

TEST(SampleOrder, ReadsEachSampleOnceAnEpochAroundPowersOfTwo) {
  for (const int64_t power : {1024, 4096, 65536}) {
    for (const int64_t size : {power - 1, power, power + 1}) {
      ASSERT_EQ(sorted(epoch_of(SampleOrder(size, Order::kShuffled, 7), 3)), first_numbers(size)) << size;
    }
  }
}

// What cannot be listed: two indices never meet, and all stay inside.
RC_GTEST_PROP(Permutation, StaysInsideAndNeverRepeats, (uint64_t key)) {
  const int bits = *rc::gen::inRange(1, 62);
  const auto size = *rc::gen::inRange<int64_t>(int64_t{1} << (bits - 1), int64_t{1} << bits);
  const Permutation permutation(size, key);
  std::set<int64_t> from, to;
  for (int i = 0; i < 200; ++i) {
    const auto index = *rc::gen::inRange<int64_t>(0, size);
    const int64_t value = permutation(index);
    RC_ASSERT(value >= 0 && value < size);
    from.insert(index);
    to.insert(value);
  }
  RC_ASSERT(from.size() == to.size());
}

TEST(SampleOrder, IsAnotherInEveryEpochAndForEverySeed) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int64_t epoch = 0; epoch < 20; ++epoch)
      orders.insert(epoch_of(SampleOrder(50, Order::kShuffled, seed), epoch));
  }
  EXPECT_EQ(orders.size(), 400u);
}

TEST(SampleOrder, DependsOnNothingElse) {
  const SampleOrder once(1000, Order::kShuffled, 3), again(1000, Order::kShuffled, 3);
  for (int64_t i = 2999; i >= 0; i -= 7) {
    EXPECT_EQ(once.source_sample(i).sample, again.source_sample(i).sample);
  }
}

// A run that is resumed with another version must read the same samples.
TEST(SampleOrder, NeverChangesFromVersionToVersion) {
  EXPECT_THAT(epoch_of(SampleOrder(10, Order::kShuffled, 1), 0), testing::ElementsAre(0, 3, 2, 6, 1, 8, 9, 5, 7, 4));
  EXPECT_EQ(SampleOrder(1'000'000'007, Order::kShuffled, 42).source_sample(123'456'789'012).sample, 153'919'380);
}

TEST(SampleOrder, SequentialIsTheOrderOfTheFile) {
  const SampleOrder order(5, Order::kSequential, 9);
  EXPECT_EQ(epoch_of(order, 0), first_numbers(5));
  EXPECT_EQ(epoch_of(order, 2), first_numbers(5));
}

double chi_square(const std::vector<int64_t>& counts) {
  const double mean = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0})) / counts.size();
  double sum = 0;
  for (const int64_t count : counts) sum += (count - mean) * (count - mean) / mean;
  return sum;
}

// Six standard deviations above the mean of the distribution.
double chi_square_bound(size_t num_cells) { return num_cells - 1 + 6 * std::sqrt(2.0 * (num_cells - 1)); }

TEST(SampleOrder, OfAFewSamplesTakesEveryPermutationEquallyOften) {
  for (const int64_t size : {2, 3, 4, 5, 6}) {
    std::map<std::vector<int64_t>, int64_t> seen;
    const SampleOrder order(size, Order::kShuffled, 11);
    for (int64_t epoch = 0; epoch < 60'000; ++epoch) ++seen[epoch_of(order, epoch)];
    std::vector<int64_t> counts;
    for (const auto& [samples, count] : seen) counts.push_back(count);
    EXPECT_EQ(seen.size(), static_cast<size_t>(std::llround(std::tgamma(size + 1)))) << size;
    EXPECT_LT(chi_square(counts), chi_square_bound(counts.size())) << size;
  }
}

bool is_even(std::vector<int64_t> permutation) {
  bool even = true;
  for (size_t i = 0; i < permutation.size(); ++i) {
    while (permutation[i] != static_cast<int64_t>(i)) {
      std::swap(permutation[i], permutation[static_cast<size_t>(permutation[i])]);
      even = !even;
    }
  }
  return even;
}

// Feistel networks alone would make even ones only, of sizes that are powers of 4.
TEST(SampleOrder, IsAnEvenPermutationHalfOfTheTime) {
  constexpr int64_t kEpochs = 10'000;
  for (const int64_t size : {2, 3, 4, 5, 12, 16, 17, 64}) {
    int64_t num_even = 0;
    const SampleOrder order(size, Order::kShuffled, 13);
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) num_even += is_even(epoch_of(order, epoch)) ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(num_even), kEpochs / 2.0, 6 * std::sqrt(kEpochs) / 2) << size;
  }
}

// Where a sample comes, and what comes after it, shows nothing of where it was in the file.
TEST(SampleOrder, OfManySamplesLooksRandom) {
  constexpr int64_t kSize = 100'000, kCells = 10;
  std::vector<int64_t> places(kCells * kCells), followers(kCells * kCells), steps(kCells);
  const SampleOrder order(kSize, Order::kShuffled, 5);
  const std::vector<int64_t> samples = epoch_of(order, 0);
  const auto cell = [](int64_t i) { return i * kCells / kSize; };
  for (int64_t i = 0; i + 1 < kSize; ++i) {
    ++places[cell(i) * kCells + cell(samples[i])];
    ++followers[cell(samples[i]) * kCells + cell(samples[i + 1])];
    ++steps[cell((samples[i + 1] - samples[i] + kSize) % kSize)];
  }
  EXPECT_LT(chi_square(places), chi_square_bound(places.size()));
  EXPECT_LT(chi_square(followers), chi_square_bound(followers.size()));
  EXPECT_LT(chi_square(steps), chi_square_bound(steps.size()));
}

}  // namespace
}  // namespace layline::trainer::data::test
