#include "layline/trainer/tally/work.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

namespace layline::trainer::tally {
namespace {

constexpr double kSleep = 0.02;

void sleep() { std::this_thread::sleep_for(std::chrono::duration<double>(kSleep)); }

double seconds_of(const WorkSeconds& seconds, Work work) { return seconds[static_cast<size_t>(work)]; }

class WorkTime : public testing::Test {
 protected:
  void SetUp() override { take_work_seconds(); }
};

TEST_F(WorkTime, GoesToTheInnermostScope) {
  {
    const WorkScope product(Work::kMatrixMultiplication);
    sleep();
    {
      const WorkScope gather(Work::kTensorParallel);
      sleep();
      sleep();
    }
  }
  const WorkSeconds seconds = take_work_seconds();
  EXPECT_GE(seconds_of(seconds, Work::kMatrixMultiplication), kSleep);
  EXPECT_GE(seconds_of(seconds, Work::kTensorParallel), 2 * kSleep);
  EXPECT_LT(seconds_of(seconds, Work::kOther), kSleep);
}

TEST_F(WorkTime, AddsUpToWhatHasPassed) {
  const auto start = std::chrono::steady_clock::now();
  take_work_seconds();
  for (const Work work : {Work::kAttention, Work::kOptimizer, Work::kAttention}) {
    const WorkScope scope(work);
    sleep();
  }
  const WorkSeconds seconds = take_work_seconds();
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  EXPECT_LE(sum, passed);
  EXPECT_GT(sum, 0.9 * passed);
}

TEST_F(WorkTime, OfRecomputationIsItsOwnButForCollectives) {
  {
    const WorkScope again(Work::kRecomputation);
    {
      const WorkScope product(Work::kMatrixMultiplication);
      sleep();
    }
    const WorkScope gather(Work::kTensorParallel);
    sleep();
  }
  const WorkSeconds seconds = take_work_seconds();
  EXPECT_GE(seconds_of(seconds, Work::kRecomputation), kSleep);
  EXPECT_GE(seconds_of(seconds, Work::kTensorParallel), kSleep);
  EXPECT_EQ(seconds_of(seconds, Work::kMatrixMultiplication), 0);
}

TEST_F(WorkTime, IsTakenOnceAndInTheMiddleOfAScope) {
  const WorkScope scope(Work::kAttention);
  sleep();
  EXPECT_GE(seconds_of(take_work_seconds(), Work::kAttention), kSleep);
  EXPECT_LT(seconds_of(take_work_seconds(), Work::kAttention), kSleep);
}

TEST_F(WorkTime, IsOfEachThread) {
  std::thread([] {
    const WorkScope scope(Work::kAttention);
    sleep();
  }).join();
  EXPECT_EQ(seconds_of(take_work_seconds(), Work::kAttention), 0);
}

}  // namespace
}  // namespace layline::trainer::tally
