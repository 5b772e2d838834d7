#include "layline/trainer/metrics/metrics_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "layline/base/error.h"

namespace layline::trainer::metrics {
namespace {

using nlohmann::json;

class Metrics : public testing::Test {
 protected:
  Metrics()
      : file_(std::filesystem::path(testing::TempDir()) /
              ("layline_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
               std::to_string(getpid()))) {}
  ~Metrics() override { std::filesystem::remove(file_); }

  std::string path() const { return file_.string(); }
  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write_text(const std::string& text) const { std::ofstream(file_) << text; }
  std::vector<json> rows() const {
    std::ifstream in(file_);
    std::vector<json> rows;
    for (std::string line; std::getline(in, line);) rows.push_back(json::parse(line));
    return rows;
  }

 private:
  std::filesystem::path file_;
};

StepRecord record(int64_t step) {
  StepRecord record;
  record.step = step;
  record.steps = 10;
  record.loss = 5.5451774444795625;
  record.grad_norm = 1.25;
  record.learning_rate = 1e-3;
  record.tokens = step * 16384;
  record.step_seconds = 0.75;
  record.tokens_per_second = 21845.333333333332;
  record.peak_memory_bytes = 7000000000;
  record.peak_memory_bytes_by_stage = {7000000000, 6000000000};
  return record;
}

TEST_F(Metrics, ARowHasTheAgreedKeys) {
  const json row = json::parse(to_json_line(record(3)));
  std::set<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.insert(key);
  EXPECT_EQ(keys,
            (std::set<std::string>{"step", "steps", "loss", "grad_norm", "learning_rate", "tokens", "step_seconds",
                                   "tokens_per_second", "mfu", "peak_memory_bytes", "peak_memory_bytes_by_stage"}));
  EXPECT_EQ(row["step"], 3);
  EXPECT_EQ(row["loss"].get<double>(), 5.5451774444795625);  // to the last bit
  EXPECT_EQ(row["tokens"], 3 * 16384);
  EXPECT_EQ(row["tokens_per_second"].get<double>(), 21845.333333333332);
  EXPECT_EQ(row["peak_memory_bytes"], 7000000000);
  EXPECT_EQ(row["peak_memory_bytes_by_stage"], json::array({7000000000, 6000000000}));
}

TEST_F(Metrics, WhatIsNotKnownOrNoNumberIsNull) {
  StepRecord odd = record(1);
  odd.loss = NAN;
  odd.grad_norm = INFINITY;
  const json row = json::parse(to_json_line(odd));
  EXPECT_TRUE(row["loss"].is_null());
  EXPECT_TRUE(row["grad_norm"].is_null());
  EXPECT_TRUE(row["mfu"].is_null());
  odd.mfu = 0.5;
  odd.validation_loss = 2.5;
  EXPECT_EQ(json::parse(to_json_line(odd))["mfu"], 0.5);
  EXPECT_EQ(json::parse(to_json_line(odd))["validation_loss"], 2.5);
}

TEST_F(Metrics, EachRowIsThereWhenItWasWritten) {
  MetricsWriter writer(path());
  for (int64_t step = 1; step <= 3; ++step) {
    writer.write(record(step));
    EXPECT_EQ(rows().size(), static_cast<size_t>(step));
  }
  EXPECT_EQ(text().back(), '\n');
}

TEST_F(Metrics, ALaterRunAppends) {
  MetricsWriter(path()).write(record(1));
  MetricsWriter(path()).write(record(1));
  MetricsWriter(path()).write(record(2));
  const auto all = rows();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2]["step"], 2);
}

TEST_F(Metrics, ARowThatACrashLeftUnfinishedIsCut) {
  const std::string whole = to_json_line(record(1)) + "\n";
  for (size_t length : {9u, 20u, 40u}) {
    write_text(whole + to_json_line(record(2)).substr(0, length));
    MetricsWriter(path()).write(record(2));
    EXPECT_EQ(text(), whole + to_json_line(record(2)) + "\n") << length;
  }
}

TEST_F(Metrics, OtherTextIsNeverCut) {
  for (const std::string& before : {std::string("my notes"), to_json_line(record(1)), std::string("{\"st")}) {
    write_text(before);
    MetricsWriter(path()).write(record(2));
    EXPECT_EQ(text(), before + "\n" + to_json_line(record(2)) + "\n");
  }
}

TEST_F(Metrics, AFileThatCannotBeWrittenIsTheUsersMistake) {
  EXPECT_THROW(MetricsWriter("/no/such/folder/metrics.jsonl"), base::InputError);
  EXPECT_THROW(MetricsWriter{testing::TempDir()}, base::InputError);
}

TEST_F(Metrics, OfTwoRunsAtOnceDoNotGoIntoOneFile) {
  MetricsWriter first(path());
  first.write(record(1));
  EXPECT_THROW(MetricsWriter{path()}, base::InputError);
  first.write(record(2));
  const MetricsWriter device("/dev/null"), same_device("/dev/null");
}

TEST_F(Metrics, AFullDiskEndsTheRun) {
  MetricsWriter full("/dev/full");
  EXPECT_THROW(full.write(record(1)), base::RunError);
}

}  // namespace
}  // namespace layline::trainer::metrics
