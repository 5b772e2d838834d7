// `layline report` as a user meets it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

namespace fs = std::filesystem;

const std::string kHeader =
    "hardware,gpus_total,model,layers,hidden,heads,vocab,seq_len,global_batch_sequences,micro_batch_size,tp,pp,status,"
    "engine,mlp,ffn_hidden,step_time_s\n";

std::string row(const std::string& model, int mb, const std::string& status, const std::string& seconds) {
  return "A100-80GB SXM,64," + model + ",40,5120,40,128000,2048,2048," + std::to_string(mb) + ",2,2," + status +
         ",aleph-scaling,swiglu,13824," + seconds + "\n";
}

std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += row("Llama", 1 << (i % 4), "ok", std::to_string(30 + i % 7));
  return text;
}

class ReportCommand : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write_text(path("runs.csv"),
               kHeader + row("Llama", 1, "ok", "30") + row("Llama", 2, "ok", "32") + row("Llama", 8, "oom", ""));
  }
};

TEST_F(ReportCommand, WritesOneHtmlFileAndSaysWhat) {
  const Result result = layline("report runs.csv --output page.html");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "page.html: ")) << result.out;
  const std::string page = read_text(path("page.html"));
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_TRUE(has(page, "Training runs of Llama"));
  EXPECT_LT(page.size(), 2'000'000u);
}

TEST_F(ReportCommand, TakesTheFormatFromTheFlagOrTheEnding) {
  EXPECT_TRUE(has(layline("report runs.csv").out, "Best layouts\n----"));
  EXPECT_TRUE(has(layline("report runs.csv --format markdown").out, "## Best layouts"));
  EXPECT_EQ(layline("report runs.csv --output r.md").code, 0);
  EXPECT_TRUE(has(read_text(path("r.md")), "## Best layouts"));
  const auto json = nlohmann::json::parse(layline("report runs.csv --json").out);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["datasets"]["runs"]["rows"].size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(layline("report runs.csv --format json").out), json);
}

TEST_F(ReportCommand, RefusesWhatItCannotRead) {
  expect_error(layline("report nothing.csv"), {"nothing.csv"});
  write_text(path("empty.csv"), kHeader);
  expect_error(layline("report empty.csv --output page.html"), {"empty.csv", "no runs"});
  EXPECT_FALSE(fs::exists(path("page.html")));
  expect_error(layline("report runs.csv --format pdf"), {"--format"});
  expect_error(layline("report runs.csv --format html"), {"--output"});
  expect_error(layline("report runs.csv --formt html"), {"--format"});
  expect_error(layline("report runs.csv --calibration nobodys"), {"nobodys"});
  expect_error(layline("report runs.csv --data somewhere"), {"--data"});
  expect_error(layline("report runs.csv --output page.pdf"), {"page.pdf", ".pdf", ".html, .md, .json or .txt"});
  EXPECT_FALSE(fs::exists(path("page.pdf")));
  expect_error(layline("report runs.csv --engine aleph-scalin"), {"aleph-scalin", "did you mean \"aleph-scaling\""});
  expect_error(layline("report runs.csv --json --format text"), {"--json", "--format text"});
  expect_error(layline("report"), {"layline report", "runs is required"});
}

TEST_F(ReportCommand, WritesNothingWhereItCannot) {
  expect_error(layline("report runs.csv --output no/such/folder/page.html"), {"no/such/folder/page.html"});
  write_text(path("file"), "");
  expect_error(layline("report runs.csv --output file/page.html"), {"file/page.html"});
}

TEST_F(ReportCommand, ShowsRunsOfUnknownEnginesWithoutPredictingThem) {
  std::string text = kHeader + row("Llama", 1, "ok", "30");
  text.replace(text.rfind("aleph-scaling"), 13, "nobodys-engine");
  write_text(path("unknown.csv"), text);
  const Result result = layline("report unknown.csv");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "nobodys-engine")) << result.out;
  EXPECT_TRUE(has(result.out, "None of these runs can be predicted")) << result.out;
}

TEST_F(ReportCommand, RefusesMoreRowsThanAReportHoldsUnlessASampleIsAskedFor) {
  write_text(path("many.csv"), kHeader + rows(20'001));
  expect_error(layline("report many.csv"), {"20,001 runs", "--sample"});
  const Result result = layline("report many.csv --sample 50 --json");
  EXPECT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["datasets"]["runs"]["rows"].size(), 50u);
  EXPECT_EQ(json["text"][0], "An even sample of 50 of 20,001 runs: the best of a job may not be among them.");
}

TEST_F(ReportCommand, SaysInOneLineThatChartsNeedABrowser) {
  const Result result = shell("PATH=/nowhere {} report runs.csv --charts charts --output page.html");
  expect_error(result, {"--charts", "Chromium"});
  EXPECT_FALSE(fs::exists(path("charts")));
  EXPECT_FALSE(fs::exists(path("page.html")));
}

TEST_F(ReportCommand, OfThePaperFindsThePublishedRuns) {
  const Result result =
      shell("cd '" LAYLINE_SOURCE_DIR "' && {} report paper --format markdown --output '" + path("paper.md") + "'");
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string text = read_text(path("paper.md"));
  EXPECT_TRUE(has(text, "7 of the paper's 10 sweeps are here"));
  EXPECT_TRUE(has(text, "Missing: Llama-13B at 8k tokens, sequence parallelism"));
  EXPECT_TRUE(has(text, "| Llama-13B, 2k, 64 GPUs | 1 | dp64 tp1 pp1 mb1 |"));
  EXPECT_TRUE(has(text, "MPT (llm-foundry)"));
}

TEST_F(ReportCommand, OfThePaperWantsItsRuns) {
  fs::create_directories(path("data"));
  expect_error(layline("report paper --data data"), {"no .csv file"});
  fs::copy_file(path("runs.csv"), path("data/runs.csv"));
  expect_error(layline("report paper --data data"), {"2311.05610"});
  expect_error(layline("report paper --data nowhere"), {"nowhere"});
  expect_error(layline("report paper --engine layline"), {"--engine"});
  expect_error(layline("report paper --sample 10"), {"--sample"});
}

}  // namespace
}  // namespace layline::test
