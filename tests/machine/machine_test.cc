// From measurements to a cluster spec and to prices, on a made-up machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/calibrate/fit.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/machine/build.h"
#include "layline/machine/plan.h"
#include "layline/machine/samples.h"
#include "layline/spec/measured_names.h"
#include "layline/spec/registry.h"

namespace layline::machine {
namespace {

using testing::HasSubstr;

constexpr double kRate = 100e9;  // FLOP/s of a product, elements/s of all else
constexpr int kCores = 2;

constexpr double kShared = 20;  // of a layer that ranks share, to what a whole one takes

double seconds_of(const Point& point, double shared = kShared) {
  double work = 1;
  for (const double size : point.sizes) work *= size;
  if (point.table.starts_with("split_layer") || point.table.starts_with("sequence_layer")) return shared * work / kRate;
  return point.table.starts_with("product") ? 2 * work / kRate : work / kRate;
}

// A machine on which all goes at kRate, and twice as many ranks take twice as long.
Samples samples(double slowness = 1, double shared = kShared) {
  Samples all{{"made up, 2 cores", kCores, 16e9}, {}};
  for (const int ranks : rank_counts(kCores)) {
    for (const Point& point : points_for(ranks, kCores)) {
      all.samples.push_back({ranks, std::max(1, kCores / ranks), point, slowness * seconds_of(point, shared), 0.01, 5});
    }
  }
  return all;
}

class SampleFile : public testing::Test {
 protected:
  ~SampleFile() override { std::filesystem::remove(path_); }
  std::string path_ =
      (std::filesystem::path(testing::TempDir()) /
       (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + std::to_string(getpid())))
          .string();
  void write(const std::string& text) const { std::ofstream(path_) << text; }
};

TEST(Plan, RanksAreOneAllCoresAndTwiceAsMany) {
  EXPECT_EQ(rank_counts(1), (std::vector<int>{1, 2}));
  EXPECT_EQ(rank_counts(2), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(rank_counts(3), (std::vector<int>{1, 2, 4, 6}));
  EXPECT_EQ(rank_counts(64), (std::vector<int>{1, 2, 4, 64, 128}));
}

TEST(Plan, PointsAreAllCombinations) {
  const std::vector<Point> points = points_of({"t", {{1, 2}, {3, 4}}});
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1].sizes, (std::vector<double>{1, 4}));
  EXPECT_EQ(points[2].sizes, (std::vector<double>{2, 3}));
}

TEST_F(SampleFile, ComesBackAsItWasWritten) {
  const Samples written = samples();
  std::string text = to_line(written.machine);
  for (const Sample& sample : written.samples) text += to_line(sample);
  write(text);
  const Samples read = read_samples(path_);
  EXPECT_EQ(read.machine, written.machine);
  ASSERT_EQ(read.samples.size(), written.samples.size());
  EXPECT_EQ(read.samples[7].point, written.samples[7].point);
  EXPECT_EQ(read.samples[7].seconds, written.samples[7].seconds);
  EXPECT_TRUE(missing_points(read, 2).empty());
}

TEST_F(SampleFile, ThatWasCutGoesOnWithThePointThatWasCut) {
  const Samples all = samples();
  const std::string two = to_line(all.machine) + to_line(all.samples[0]);
  const std::string torn = to_line(all.samples[1]);
  write(two + torn.substr(0, torn.size() / 2));
  drop_torn_line(path_);
  EXPECT_EQ(base::read_file(path_, 1 << 20), two);
  const std::vector<Point> missing = missing_points(read_samples(path_), 1);
  EXPECT_EQ(missing.size() + 1, points_for(1, kCores).size());
  EXPECT_EQ(missing.front(), all.samples[1].point);
}

TEST_F(SampleFile, OfAnotherKindIsRefused) {
  write("{\"step\": 1}\n");
  EXPECT_THROW(read_samples(path_), base::InputError);
}

TEST(Samples, ThatAreNoisyAreDoubtfulUntilOneIsNot) {
  Samples noisy = samples();
  const auto of_two = std::find_if(noisy.samples.begin(), noisy.samples.end(),
                                   [](const Sample& sample) { return sample.num_ranks == 2; });
  Sample calm = *of_two;
  calm.spread = 0;
  of_two->spread = 2 * kNoisySpread;
  ASSERT_EQ(doubtful_points(noisy, 2).size(), 1U);
  EXPECT_EQ(doubtful_points(noisy, 2).front(), calm.point);
  EXPECT_TRUE(doubtful_points(noisy, 1).empty());
  noisy.samples.push_back(calm);  // measured again
  EXPECT_TRUE(doubtful_points(noisy, 2).empty());
}

TEST(Time, IsSharedByAllNumbersOfRanks) {
  double sum = 0;
  for (const int num_ranks : rank_counts(kCores)) sum += seconds_for(num_ranks, kCores);
  EXPECT_NEAR(sum, 90, 1e-9);
  EXPECT_GT(seconds_for(2, 2), seconds_for(1, 2));
}

TEST(Samples, ThatTookLongerThanALargerOneAreDoubtful) {
  Samples noisy = samples();
  EXPECT_TRUE(doubtful_points(noisy, 1).empty());
  const Sample small = *std::find_if(noisy.samples.begin(), noisy.samples.end(), [](const Sample& sample) {
    return sample.point.table == spec::measured::name(spec::measured::kProductForward, spec::Precision::kBf16);
  });
  Sample slow = small;
  slow.seconds *= 1e6;
  std::erase_if(noisy.samples, [&](const Sample& sample) {
    return sample.num_ranks == 1 && sample.point.table == small.point.table && sample.point.sizes == small.point.sizes;
  });
  noisy.samples.push_back(slow);
  ASSERT_EQ(doubtful_points(noisy, 1).size(), 1U);
  EXPECT_EQ(doubtful_points(noisy, 1).front().sizes, small.point.sizes);
  noisy.samples.push_back(small);  // measured again: the faster one counts
  EXPECT_TRUE(doubtful_points(noisy, 1).empty());
}

TEST(BuildCluster, WantsEveryPoint) {
  Samples all = samples();
  all.samples.pop_back();
  EXPECT_THROW(build_cluster(all), base::InputError);
}

TEST(BuildCluster, ComesBackFromItsJson) {
  const spec::Cluster built = build_cluster(samples());
  const spec::Cluster read = spec::parse_cluster(spec::to_json(built), "machine.json");
  ASSERT_TRUE(read.measured);
  EXPECT_EQ(read.measured->machine, "made up, 2 cores");
  EXPECT_EQ(read.measured->by_ranks.size(), built.measured->by_ranks.size());
  EXPECT_EQ(spec::to_json(read), spec::to_json(built));
}

spec::Job job_on(const spec::Cluster& cluster, int64_t num_ranks) {
  spec::Job job;
  job.model = spec::get_model("llama-tiny");
  job.cluster = cluster;
  job.engine = spec::get_engine("layline");
  job.num_gpus = num_ranks;
  job.global_batch = 8;
  job.sequence_length = 256;
  return job;
}

double step_seconds(const spec::Cluster& cluster, int64_t num_ranks, const std::string& layout) {
  const spec::Job job = job_on(cluster, num_ranks);
  return cost::Pricer(job).price(layout::parse_layout(layout, {.num_gpus = num_ranks})).step_seconds;
}

TEST(MeasuredMachine, PricesEveryAxisOnAnyNumberOfRanks) {
  const spec::Cluster cluster = build_cluster(samples());
  for (const auto& [ranks, layout] : {std::pair{1, "mb1"},
                                      {1, "mb2 ckpt=full"},
                                      {1, "mb1 ckpt=selective"},
                                      {2, "tp2 mb1"},
                                      {2, "tp2 mb1 sp"},
                                      {2, "pp2 mb1"},
                                      {4, "dp2 tp2 mb1"},
                                      {4, "pp4 mb1 sched=zb"},
                                      {4, "dp4 mb1 zero0"},
                                      {8, "dp4 pp2 mb1"},
                                      {1, "mb1 attn=unfused norm=unfused"}}) {
    EXPECT_GT(step_seconds(cluster, ranks, layout), 0) << layout;
  }
}

TEST(MeasuredMachine, ThatTakesTwiceAsLongHasStepsTwiceAsLong) {
  const spec::Cluster fast = build_cluster(samples()), slow = build_cluster(samples(2));
  for (const auto& [ranks, layout] : {std::pair{1, "mb1"}, {2, "tp2 mb1 sp"}, {2, "pp2 mb1"}, {4, "dp4 mb1"}}) {
    EXPECT_NEAR(step_seconds(slow, ranks, layout) / step_seconds(fast, ranks, layout), 2, 1e-6) << layout;
  }
}

TEST(MeasuredMachine, WaitsInSharedLayersForAsLongAsTheyTookLonger) {
  const auto waits = [](double shared, const std::string& layout) {
    const spec::Job job = job_on(build_cluster(samples(1, shared)), 2);
    const cost::StepPrice price = cost::Pricer(job).price(layout::parse_layout(layout, {.num_gpus = 2}));
    return std::pair{price[cost::Kind::kTensorParallel], price[cost::Kind::kGemm]};
  };
  for (const std::string layout : {"tp2 mb2", "tp2 mb2 sp"}) {
    const auto [few, gemm] = waits(kShared, layout);
    const auto [many, same_gemm] = waits(2 * kShared, layout);
    // Passes of a layer of this many tokens, forward and backward, took so much longer (between sizes, about).
    const double layers = static_cast<double>(spec::get_model("llama-tiny").num_layers);
    const double tokens = 8 * 256, hidden = static_cast<double>(spec::get_model("llama-tiny").hidden);
    EXPECT_NEAR(many - few, 2 * layers * kShared * tokens * hidden / kRate, 0.05 * (many - few)) << layout;
    EXPECT_EQ(gemm, same_gemm) << layout;
  }
  EXPECT_EQ(waits(kShared, "dp2 mb2"), waits(2 * kShared, "dp2 mb2"));
}

TEST(MeasuredMachine, PricesNormsByTheirKernel) {
  Samples slow_norms = samples();
  for (Sample& sample : slow_norms.samples) {
    if (sample.point.table.starts_with("unfused_norm")) sample.seconds *= 10;
  }
  const spec::Cluster same = build_cluster(samples()), slow = build_cluster(slow_norms);
  EXPECT_GT(step_seconds(slow, 1, "mb1 norm=unfused"), 1.01 * step_seconds(same, 1, "mb1 norm=unfused"));
  EXPECT_EQ(step_seconds(slow, 1, "mb1"), step_seconds(same, 1, "mb1"));
}

TEST(MeasuredMachine, PartsOfAStepAreNeverNegativeAndAddUp) {
  const spec::Cluster cluster = build_cluster(samples());
  for (const std::string layout : {"pp4 mb1", "pp4 mb4", "dp2 pp2 mb1", "tp2 pp2 mb2 sp", "pp4 mb1 sched=zb"}) {
    const spec::Job job = job_on(cluster, 4);
    const cost::StepPrice price = cost::Pricer(job).price(layout::parse_layout(layout, {.num_gpus = 4}));
    double sum = 0;
    for (const double seconds : price.seconds) {
      EXPECT_GE(seconds, 0) << layout;
      sum += seconds;
    }
    EXPECT_DOUBLE_EQ(sum, price.step_seconds) << layout;
  }
}

TEST(Samples, OfAPointCountOnce) {
  Samples twice = samples();
  const size_t num_points = best_samples(twice, 1).size();
  Sample again = twice.samples.front();
  again.seconds /= 2;
  twice.samples.push_back(again);
  EXPECT_EQ(best_samples(twice, 1).size(), num_points);
  EXPECT_EQ(best_samples(twice, 1).at(again.point).seconds, again.seconds);
}

// What runs would take if collectives were late, recomputation cheap and a step had work of its own.
calibrate::Observation run_on(const std::shared_ptr<const spec::Job>& job, const std::string& layout,
                              const spec::Coefficients& truth) {
  calibrate::Observation run;
  run.job = job;
  run.layout = layout::parse_layout(layout, {.num_gpus = job->num_gpus});
  run.seconds = cost::Pricer(job, truth).price(run.layout).step_seconds;
  return run;
}

TEST(MeasuredMachine, LearnsFromFourRuns) {
  const spec::Cluster cluster = build_cluster(samples());
  spec::Coefficients truth;
  truth.measured_compute_scale = 1.2;
  truth.measured_recompute_scale = 0.8;
  truth.measured_collective_seconds = 2e-4;
  std::vector<calibrate::Observation> runs;
  for (const auto& [ranks, layout] :
       {std::pair{1, "mb1"}, {1, "mb2 ckpt=full"}, {2, "tp2 mb1 sp"}, {4, "dp2 pp2 mb1"}}) {
    runs.push_back(run_on(std::make_shared<spec::Job>(job_on(cluster, ranks)), layout, truth));
  }
  const calibrate::Fit fit = calibrate::fit(runs, {}, {});
  for (const auto& [ranks, layout] : {std::pair{1, "mb4"}, {2, "tp2 mb2 ckpt=full"}, {4, "dp2 tp2 mb1"}}) {
    const auto job = std::make_shared<spec::Job>(job_on(cluster, ranks));
    const calibrate::Observation unseen = run_on(job, layout, truth);
    EXPECT_NEAR(run_on(job, layout, fit.coefficients).seconds / unseen.seconds, 1, 0.06) << layout;
    EXPECT_GT(std::abs(run_on(job, layout, {}).seconds / unseen.seconds - 1), 0.1) << layout;
  }
  EXPECT_EQ(fit.coefficients.gemm_efficiency, spec::Coefficients().gemm_efficiency);
}

TEST(MeasuredMachine, HasNoMoreCoresForMoreRanks) {
  const spec::Cluster cluster = build_cluster(samples());
  EXPECT_NEAR(cost::peak_flops_per_second(job_on(cluster, 4)) / cost::peak_flops_per_second(job_on(cluster, 2)), 1,
              1e-9);
}

}  // namespace
}  // namespace layline::machine
