#include "layline/trainer/metrics/read_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "layline/trainer/metrics/metrics_writer.h"

namespace layline::trainer::metrics {
namespace {

class ReadMetrics : public testing::Test {
 protected:
  ~ReadMetrics() override { std::filesystem::remove(file_); }

  std::vector<StepRecord> read(const std::string& text) const {
    std::ofstream(file_) << text;
    return read_metrics(file_.string());
  }

 private:
  std::filesystem::path file_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + std::to_string(getpid()));
};

StepRecord record(int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.grad_norm = 1.25;
  record.learning_rate = 1e-3;
  record.tokens = step * 16384;
  record.step_seconds = 0.75;
  record.tokens_per_second = 21845.333333333332;
  record.mfu = 0.25;
  record.peak_memory_bytes = 7000000000;
  record.peak_memory_bytes_by_stage = {7000000000, 6000000000};
  record.seconds_by_stage = {{{"attention", 0.5}, {"other", 0.25}}, {{"pipeline", 0.125}}};
  record.memory_bytes_by_stage = {{{"weights", 7000000000}}, {{"logits", 12}}};
  record.layout = "dp1 tp1 pp2 mb1";
  record.num_parameters = 12786048;
  return record;
}

std::string row(int64_t step, double loss) { return to_json_line(record(step, loss)) + "\n"; }

TEST_F(ReadMetrics, OfARunThatBeginsAgainForgetsTheOneBefore) {
  const std::vector<StepRecord> found = read(row(1, 9) + row(2, 9) + row(3, 9) + row(1, 5) + row(2, 4));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].loss, 5);
  EXPECT_EQ(found[1].loss, 4);
}

TEST_F(ReadMetrics, GivesWhatWasWritten) {
  const std::vector<StepRecord> found = read(row(1, 5.5451774444795625));
  ASSERT_EQ(found.size(), 1u);
  const StepRecord written = record(1, 5.5451774444795625);
  EXPECT_EQ(found[0].step, 1);
  EXPECT_EQ(found[0].loss, written.loss);
  EXPECT_EQ(found[0].grad_norm, written.grad_norm);
  EXPECT_EQ(found[0].learning_rate, written.learning_rate);
  EXPECT_EQ(found[0].tokens, written.tokens);
  EXPECT_EQ(found[0].step_seconds, written.step_seconds);
  EXPECT_EQ(found[0].tokens_per_second, written.tokens_per_second);
  EXPECT_EQ(found[0].mfu, written.mfu);
  EXPECT_EQ(found[0].layout, written.layout);
  EXPECT_EQ(found[0].num_parameters, written.num_parameters);
  EXPECT_EQ(found[0].peak_memory_bytes, written.peak_memory_bytes);
  EXPECT_EQ(found[0].peak_memory_bytes_by_stage, written.peak_memory_bytes_by_stage);
  EXPECT_EQ(found[0].seconds_by_stage, written.seconds_by_stage);
  EXPECT_EQ(found[0].memory_bytes_by_stage, written.memory_bytes_by_stage);
}

TEST_F(ReadMetrics, OfAStepThatWasDoneAgainTheLastRowCounts) {
  const std::vector<StepRecord> found = read(row(1, 5) + row(2, 4) + row(3, 3) + row(2, 2));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].step, 2);
  EXPECT_EQ(found[1].loss, 2);
}

TEST_F(ReadMetrics, LeavesOutWhatIsUnfinishedOrNoRow) {
  const std::string second = row(2, 4);
  EXPECT_EQ(read(row(1, 5) + second.substr(0, second.size() - 1)).size(), 1u);
  EXPECT_EQ(read("notes\n[]\n{}\n{\"step\": 0}\n{\"step\": \"1\"}\n" + row(1, 5)).size(), 1u);
  EXPECT_EQ(read("").size(), 0u);
  EXPECT_EQ(read_metrics("/no/such/metrics.jsonl").size(), 0u);
}

TEST_F(ReadMetrics, TakesRowsThatLackKeys) {
  const std::vector<StepRecord> found = read("{\"step\":4,\"loss\":null,\"seconds_by_stage\":[1,{\"other\":\"x\"}]}\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(std::isnan(found[0].loss));
  EXPECT_FALSE(found[0].mfu.has_value());
  EXPECT_EQ(found[0].seconds_by_stage.size(), 2u);
  EXPECT_TRUE(found[0].seconds_by_stage[1].empty());
}

}  // namespace
}  // namespace layline::trainer::metrics
