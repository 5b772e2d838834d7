#include "layline/trainer/data/data_set.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "layline/trainer/data/batch.h"
#include "tests/trainer/formats/files.h"

namespace layline::trainer::data::test {
namespace {

using formats::test::input_error;
using formats::test::TemporaryFolder;
using formats::test::write_u16_tokens;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Sample {
  std::vector<int64_t> tokens, targets;
};

Sample read(const DataSet& data, int64_t global_index) {
  Sample sample;
  sample.tokens.resize(static_cast<size_t>(data.sequence_length()), -7);
  sample.targets.resize(sample.tokens.size(), -7);
  data.sample(global_index, sample.tokens, sample.targets);
  return sample;
}

class DataSets : public testing::Test {
 protected:
  // A stream in which each token is its position, so that each sample tells where it is from.
  std::string positions(const std::string& prefix, int64_t num_tokens, int64_t first = 0) {
    std::vector<int64_t> tokens(static_cast<size_t>(num_tokens));
    std::iota(tokens.begin(), tokens.end(), first);
    return write_u16_tokens(folder_, prefix, tokens);
  }

  DataSet open(const std::vector<WeightedPath>& sources, int64_t sequence_length, Order order = Order::kShuffled,
               uint64_t seed = 1, int64_t vocabulary = 65536) const {
    return DataSet({.sources = sources,
                    .sequence_length = sequence_length,
                    .vocabulary = vocabulary,
                    .order = order,
                    .seed = seed});
  }

  TemporaryFolder folder_;
};

TEST_F(DataSets, ReadSampleIAtTokenITimesSWithTargetsOneFurtherOn) {
  const DataSet data = open({{positions("t", 14)}}, 4, Order::kSequential);
  EXPECT_EQ(data.num_samples(), 3);
  EXPECT_THAT(read(data, 0).tokens, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(read(data, 0).targets, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read(data, 2).tokens, ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(read(data, 2).targets, ElementsAre(9, 10, 11, 12));
  EXPECT_THAT(read(data, 3).tokens, ElementsAre(0, 1, 2, 3));
}

TEST_F(DataSets, NeedOneTokenMoreThanTheirSamples) {
  for (const auto& [num_tokens, num_samples] : std::map<int64_t, int64_t>{{5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 3}}) {
    EXPECT_EQ(open({{positions("t", num_tokens)}}, 4).num_samples(), num_samples) << num_tokens;
  }
  for (const int64_t num_tokens : {0, 1, 4}) {
    const std::string prefix = positions("t", num_tokens);
    EXPECT_THAT(input_error([&] { open({{prefix}}, 4); }),
                AllOf(HasSubstr("t.bin"), HasSubstr("one sample of 4 needs 5")));
  }
  EXPECT_EQ(read(open({{positions("t", 2)}}, 1), 7).targets, std::vector<int64_t>{1});
}

TEST_F(DataSets, ShuffledReadEverySampleOnceAnEpoch) {
  const DataSet data = open({{positions("t", 1001)}}, 10);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> first_tokens;
    for (int64_t i = 0; i < 100; ++i) first_tokens.insert(read(data, 100 * epoch + i).tokens[0]);
    EXPECT_EQ(first_tokens.size(), 100u);
    EXPECT_EQ(*first_tokens.rbegin(), 990);
  }
}

TEST_F(DataSets, OfSeveralSourcesAreMixedByWeight) {
  const DataSet data = open({{positions("a", 101), 3}, {positions("b", 301, 1000), 1}}, 10);
  int64_t from_b = 0;
  for (int64_t i = 0; i < 400; ++i) {
    const DataSet::Location location = data.locate(i);
    from_b += static_cast<int64_t>(location.source);
    EXPECT_EQ(read(data, i).tokens[0], location.source * 1000 + location.sample * 10);
  }
  EXPECT_EQ(from_b, 100);
  EXPECT_EQ(data.num_samples(), 40);
  EXPECT_EQ(data.locate(399).epoch, data.locate(399).source == 0 ? 29 : 3);
}

TEST_F(DataSets, OfOneFileTwiceReadItInTwoOrders) {
  const std::string prefix = positions("a", 1001);
  const DataSet data = open({{prefix}, {prefix}}, 10);
  int num_same = 0;
  for (int64_t i = 0; i < 200; i += 2) num_same += data.locate(i).sample == data.locate(i + 1).sample ? 1 : 0;
  EXPECT_LT(num_same, 10);
}

TEST_F(DataSets, RefuseTokensBeyondTheVocabulary) {
  const std::string prefix = positions("t", 13);
  EXPECT_NO_THROW(open({{prefix}}, 4, Order::kSequential, 1, 13));
  EXPECT_THAT(input_error([&] { open({{prefix}}, 4, Order::kSequential, 1, 12); }),
              AllOf(HasSubstr("t.bin"), HasSubstr("token 12 has the id 12"), HasSubstr("0 to 11")));
  folder_.write("text", "abc\xff");
  EXPECT_THAT(input_error([&] { open({{folder_.file("text")}}, 2, Order::kSequential, 1, 255); }),
              HasSubstr("token 3 has the id 255"));
  folder_.write("text", "plain ascii");
  EXPECT_NO_THROW(open({{folder_.file("text")}}, 2, Order::kSequential, 1, 128));
}

// Past what is checked at opening: the file says so when it is read, also for a token that is a target only.
TEST_F(DataSets, RefuseLateTokensWhenTheyAreRead) {
  std::string text(17 << 20, 'a');
  const int64_t bad = 16'777'221;  // 3 · 5,592,407
  text[bad] = '\xfe';
  const std::string path = folder_.write("text", text);
  for (const int64_t sequence_length : {5'592'407, (1 << 20) - 1}) {
    const DataSet data = open({{path}}, sequence_length, Order::kSequential, 1, 200);
    const int64_t sample = (bad - 1) / sequence_length;
    EXPECT_NO_THROW(read(data, sample - 1));
    EXPECT_THAT(input_error([&] { read(data, sample); }), HasSubstr("token 16777221 has the id 254"));
  }
}

// The sequences of a step's global batch in order, read by all ranks of a layout.
std::vector<std::vector<int64_t>> step_of(const DataSet& data, int64_t step, int64_t dp, int64_t mb) {
  constexpr int64_t kGlobalBatch = 24;
  std::vector<std::vector<int64_t>> sequences;
  for (int64_t rank = 0; rank < dp; ++rank) {
    for (int64_t index = 0; index < kGlobalBatch / (dp * mb); ++index) {
      const MicroBatch batch = read_micro_batch(data, {.first_sample = (step - 1) * kGlobalBatch,
                                                       .global_batch = kGlobalBatch,
                                                       .dp_rank = rank,
                                                       .dp = dp,
                                                       .mb = mb,
                                                       .index = index});
      EXPECT_EQ(batch.tokens_BS.sizes(), (at::IntArrayRef{mb, data.sequence_length()}));
      for (int64_t b = 0; b < mb; ++b) {
        EXPECT_TRUE(at::equal(batch.tokens_BS[b] + 1, batch.targets_BS[b]));
        const int64_t* first = batch.tokens_BS[b].const_data_ptr<int64_t>();
        sequences.emplace_back(first, first + data.sequence_length());
      }
    }
  }
  return sequences;
}

TEST_F(DataSets, GiveEveryLayoutTheSameGlobalBatch) {
  const DataSet data = open({{positions("a", 3000), 0.6}, {positions("b", 4000, 10000), 0.4}}, 16);
  for (const int64_t step : {1, 2, 50}) {
    const auto expected = step_of(data, step, 1, 1);
    EXPECT_EQ(expected.size(), 24u);
    EXPECT_EQ(expected[5], read(data, (step - 1) * 24 + 5).tokens);
    for (const int64_t dp : {1, 2, 3, 4, 6, 8, 12, 24}) {
      for (const int64_t mb : {1, 2, 3, 4, 6, 8, 12, 24}) {
        if (24 % (dp * mb) != 0) continue;
        EXPECT_EQ(step_of(data, step, dp, mb), expected) << dp << " " << mb;
      }
    }
  }
}

TEST_F(DataSets, AreReadByManyThreads) {
  const DataSet data = open({{positions("a", 5000)}, {positions("b", 5000, 10000)}}, 16);
  std::vector<std::vector<Sample>> seen(4);
  std::vector<std::thread> threads;
  for (auto& samples : seen) {
    threads.emplace_back([&data, &samples] {
      for (int64_t i = 0; i < 500; ++i) samples.push_back(read(data, i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 500; ++i) {
    for (size_t t = 1; t < 4; ++t) EXPECT_EQ(seen[t][i].targets, seen[0][i].targets);
  }
}

}  // namespace
}  // namespace layline::trainer::data::test
