#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;

class Plan : public Program {};
class Explain : public Program {};

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object.items()) names.insert(name);
  return names;
}

void expect_keys(const json& object, const std::vector<std::string>& wanted) {
  for (const std::string& key : wanted)
    EXPECT_TRUE(object.contains(key)) << key << " in " << object.dump().substr(0, 300);
}

const std::vector<std::string> kLayoutKeys = {"layout",       "predicted_step_seconds",    "relative_error_bar",
                                              "mfu",          "tokens_per_second_per_gpu", "peak_memory_bytes_by_stage",
                                              "margin_bytes", "fit_probability",           "breakdown_seconds"};

// Characters as a terminal shows them: UTF-8 continuation bytes take no column.
size_t columns_of(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST_F(Plan, NamesAFirstLayoutForThePaperJob) {
  const Result result = layline("plan " + kPaperJob);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(has(result.out, "Llama 13B")) << result.out;
  EXPECT_TRUE(has(result.out, "\n  1   dp")) << result.out;
  EXPECT_TRUE(has(result.out, "Why the first wins")) << result.out;
  EXPECT_TRUE(has(result.out, "Next:  layline explain")) << result.out;
}

TEST_F(Plan, SuggestsACommandThatWorks) {
  const std::string out = layline("plan " + kPaperJob).out;
  const size_t start = out.find("layline explain");
  ASSERT_NE(start, std::string::npos);
  const std::string command = out.substr(start + 8, out.find('\n', start) - start - 8);
  const Result result = layline(command);
  EXPECT_EQ(result.code, 0) << command << result.err;
}

TEST_F(Plan, WritesJsonWithTheAgreedKeys) {
  const Result result = layline("plan --json --top 4 " + kPaperJob);
  ASSERT_EQ(result.code, 0) << result.err;
  const json plan = json::parse(result.out);
  expect_keys(plan, {"schema_version", "job", "engine", "calibration", "num_legal", "num_fit", "search_seconds",
                     "layouts", "default_layout", "nearest_misses"});
  EXPECT_EQ(plan["schema_version"], 1);
  EXPECT_EQ(plan["engine"], "aleph-scaling");
  ASSERT_EQ(plan["layouts"].size(), 4u);
  double before = 0;
  for (const json& layout : plan["layouts"]) {
    expect_keys(layout, kLayoutKeys);
    double sum = 0;
    for (const auto& [name, seconds] : layout["breakdown_seconds"].items()) sum += seconds.get<double>();
    const double step = layout["predicted_step_seconds"];
    EXPECT_NEAR(sum, step, 1e-9 * step);
    const double rank = layout.value("measured_step_seconds", step);
    if (!layout.contains("measured_step_seconds")) {
      EXPECT_GE(rank, before * (1 - 1e-12));
    }
    before = rank;
    EXPECT_NEAR(layout["tokens_per_second_per_gpu"].get<double>(), 2048.0 * 2048 / 64 / step, 1e-6);
    EXPECT_GT(layout["mfu"].get<double>(), 0);
    EXPECT_LT(layout["mfu"].get<double>(), 1);
    EXPECT_GE(layout["margin_bytes"].get<double>(), 0);
  }
  expect_keys(plan["default_layout"], kLayoutKeys);
}

TEST_F(Plan, SearchesOnlyWhatIsFixed) {
  const json plan = json::parse(layline("plan --json --fix 'tp4 mb1' " + kPaperJob).out);
  ASSERT_FALSE(plan["layouts"].empty());
  for (const json& layout : plan["layouts"]) {
    const std::string text = layout["layout"].get<std::string>() + " ";
    EXPECT_TRUE(has(text, "tp4 ")) << text;
    EXPECT_TRUE(has(text, "mb1 ")) << text;
  }
}

TEST_F(Plan, AddsDaysAndDollars) {
  const Result text = layline("plan --tokens 300e9 --dollars-per-gpu-hour 2 " + kPaperJob);
  EXPECT_TRUE(has(text.out, "days")) << text.out;
  EXPECT_TRUE(has(text.out, "GPU-hours")) << text.out;
  EXPECT_TRUE(has(text.out, "$")) << text.out;
  const json plan = json::parse(layline("plan --json --tokens 300B --dollars-per-gpu-hour 2 " + kPaperJob).out);
  EXPECT_DOUBLE_EQ(plan["training"]["dollars"].get<double>(), 2 * plan["training"]["gpu_hours"].get<double>());
  EXPECT_DOUBLE_EQ(plan["training"]["gpu_hours"].get<double>(), 64 * 24 * plan["training"]["days"].get<double>());
}

TEST_F(Plan, ExitsWithThreeAndReasonsWhenNothingFits) {
  const std::string job =
      "--model llama-65b --cluster a100-40gb --gpus 8 --global-batch 64 --seq-len 2048 --engine aleph-scaling";
  const Result text = layline("plan " + job);
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(has(text.out, "No layout fits")) << text.out;
  EXPECT_TRUE(has(text.out, "GiB over")) << text.out;
  EXPECT_TRUE(has(text.out, "GPUs")) << text.out;
  const Result data = layline("plan --json " + job);
  EXPECT_EQ(data.code, 3);
  const json plan = json::parse(data.out);
  EXPECT_TRUE(plan["layouts"].empty());
  EXPECT_EQ(plan["num_fit"], 0);
  ASSERT_FALSE(plan["nearest_misses"].empty());
  EXPECT_LT(plan["nearest_misses"][0]["margin_bytes"].get<double>(), 0);
}

TEST_F(Plan, ExitsWithThreeAndReasonsWhenNoLayoutIsLegal) {
  const Result text = layline("plan --fix tp3 " + kPaperJob);
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(has(text.out, "No layout is legal")) << text.out;
  EXPECT_TRUE(has(text.out, "64")) << text.out;
  const Result data = layline("plan --json --fix tp3 " + kPaperJob);
  EXPECT_EQ(data.code, 3);
  EXPECT_EQ(json::parse(data.out)["num_legal"], 0);
}

TEST_F(Plan, PricesAMillionGpus) {
  const Result result = layline(
      "plan --json --model llama-3.1-405b --cluster h100-80gb --gpus 1000000 --global-batch 1000000 --seq-len 8192");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(json::parse(result.out)["layouts"].empty());
}

TEST_F(Plan, FitsAHundredColumns) {
  for (const std::string engine : {"aleph-scaling", "layline", "torchtitan"}) {
    const Result result = layline(
        "plan --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 --engine " + engine);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      if (has(line, "layline explain") || has(line, " · ")) continue;  // to be copied; a sentence
      EXPECT_LE(columns_of(line), 100u) << line;
    }
  }
}

TEST_F(Plan, WritesNoEscapesAndNoProgressIntoAPipe) {
  const Result result = layline("plan " + kPaperJob);
  EXPECT_FALSE(has(result.out, "\033"));
  EXPECT_FALSE(has(result.out, "\r"));
  EXPECT_EQ(result.err, "");
}

TEST_F(Plan, WritesAsciiInAnAsciiLocale) {
  const Result result = shell("LC_ALL=C {} explain " + kPaperJob + " --layout 'tp2 pp2 mb1 sp'");
  EXPECT_EQ(result.code, 0);
  for (const char bar : {'\x88', '\x89', '\x8a', '\x8b'}) {
    EXPECT_EQ(result.out.find(std::string("\xe2\x96") + bar), std::string::npos);
  }
}

TEST_F(Plan, EndsQuietlyWhenItsReaderGoesAway) {
  const Result result = shell("{} plan --json --top 1000 " + kPaperJob + " | head -1");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "{\n");
  EXPECT_FALSE(has(result.err, "Aborted")) << result.err;
}

TEST_F(Plan, SaysWhenStandardOutputIsFull) {
  const Result result = shell("{} plan " + kPaperJob + " > /dev/full");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "error: ")) << result.err;
}

TEST_F(Explain, WritesJsonWithTheAgreedKeys) {
  const Result result = layline("explain --json " + kPaperJob + " --layout 'tp2 pp2 mb1 sp'");
  ASSERT_EQ(result.code, 0) << result.err;
  const json one = json::parse(result.out);
  expect_keys(one, kLayoutKeys);
  expect_keys(one, {"schema_version", "job", "engine", "calibration", "stages"});
  EXPECT_EQ(one["layout"], "dp16 tp2 pp2 mb1 sp");
  ASSERT_EQ(one["stages"].size(), 2u);
  int64_t layers = 0;
  for (size_t i = 0; i < 2; ++i) {
    const json& stage = one["stages"][i];
    EXPECT_EQ(keys(stage), (std::set<std::string>{"backward_seconds", "forward_seconds", "layers", "memory_bytes"}));
    layers += stage["layers"].get<int64_t>();
    double bytes = 0;
    for (const auto& [name, value] : stage["memory_bytes"].items()) bytes += value.get<double>();
    EXPECT_NEAR(bytes, one["peak_memory_bytes_by_stage"][i].get<double>(), 1);
  }
  EXPECT_EQ(layers, 40);
}

TEST_F(Explain, ComparesTwoLayouts) {
  const Result result = layline("explain " + kPaperJob + " --layout 'tp2 pp2 mb1 sp' --against 'tp1 pp4 mb1'");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "against dp16 tp1 pp4 mb1")) << result.out;
}

TEST_F(Explain, ExplainsLayoutsThatDoNotFit) {
  const Result result = layline("explain " + kPaperJob + " --layout 'tp1 pp1 mb32'");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "does not fit")) << result.out;
}

TEST_F(Explain, DrawsThePipelineAndWritesATrace) {
  const Result result = shell(
      "{} explain --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 --engine "
      "aleph-scaling --layout 'tp1 pp4 mb1' --timeline --trace trace.json && cat trace.json");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "rank 3")) << result.out;
  EXPECT_TRUE(has(result.out, "traceEvents")) << result.out;
}

}  // namespace
}  // namespace layline::test
