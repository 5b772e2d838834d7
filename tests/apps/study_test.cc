// `layline advise` and `layline study` as users run them.
#include <nlohmann/json.hpp>
#include <sstream>

#include "layline/runs/run_record.h"
#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;

class Advise : public Program {};
class Study : public Program {};

const std::string kRuns = " --runs " + std::string(LAYLINE_SOURCE_DIR) + "/data/published/hagemann2024_a100.csv";

const std::string kStudy = R"({"models": ["llama-1-7b"], "clusters": ["a100-80gb"], "engines": ["megatron-core"],
  "gpus": [8, 64], "sequence_lengths": [4096], "global_batch_tokens": [1048576]})";

TEST_F(Advise, AnswersForThePaperJob) {
  const Result result = layline("advise " + kPaperJob);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(has(result.out, "holds           micro-batch-1")) << result.out;
  EXPECT_TRUE(has(result.out, "does not apply  sequence-parallel")) << result.out;
  EXPECT_FALSE(has(result.out, "pairs agree"));  // no runs were given
}

TEST_F(Advise, AddsWhatRunsSay) {
  const Result result = layline("advise " + kPaperJob + kRuns);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, " pairs agree, median +")) << result.out;
  EXPECT_TRUE(has(result.out, "except llama_")) << result.out;
}

TEST_F(Advise, WritesJson) {
  const Result result = layline("advise --json " + kPaperJob + kRuns);
  ASSERT_EQ(result.code, 0) << result.err;
  const json advice = json::parse(result.out);
  EXPECT_EQ(advice["schema_version"], 1);
  EXPECT_EQ(advice["engine"], "aleph-scaling");
  ASSERT_GE(advice["rules"].size(), 12u);
  for (const json& rule : advice["rules"]) {
    for (const char* key :
         {"rule", "kind", "statement", "source", "verdict", "gain", "reason", "exceptions", "measured"}) {
      EXPECT_TRUE(rule.contains(key)) << key;
    }
    if (rule["kind"] != "comparison" || rule["gain"].is_null()) continue;
    const double gain = rule["gain"].get<double>();
    EXPECT_TRUE(rule["verdict"] != "holds" || gain > 0) << rule["rule"];
    EXPECT_TRUE(rule["verdict"] != "breaks" || gain < 0) << rule["rule"];
  }
  EXPECT_EQ(advice["rules"][0]["rule"], "micro-batch-1");
  EXPECT_EQ(advice["rules"][0]["verdict"], "holds");
  EXPECT_GT(advice["rules"][0]["gain"].get<double>(), 0);
  EXPECT_GT(advice["rules"][0]["measured"]["num_pairs"].get<int>(), 0);
  EXPECT_TRUE(advice["best"].contains("layout"));
}

TEST_F(Study, WritesAReport) {
  write_text(path("study.json"), kStudy);
  const Result result = layline("study study.json --report study.html");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::string page = read_text(path("study.html"));
  EXPECT_TRUE(has(page, "<title>Study: study</title>"));
  EXPECT_TRUE(has(page, "Where rules stop being true"));
  ASSERT_EQ(layline("study study.json --report study.json.md").code, 0);
  EXPECT_TRUE(has(read_text(path("study.json.md")), "# Study: study"));
  const Result nowhere = layline("study study.json --report missing/study.html");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(has(nowhere.err, "missing/study.html")) << nowhere.err;
}

TEST_F(Advise, ExitsWithThreeWhereNothingFits) {
  const std::string job =
      "--model llama-65b --cluster a100-40gb --gpus 8 --global-batch 64 --seq-len 2048 --engine aleph-scaling";
  const Result text = layline("advise " + job);
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(has(text.out, "no layout fits")) << text.out;
  const Result data = layline("advise --json " + job);
  EXPECT_EQ(data.code, 3);
  EXPECT_TRUE(json::parse(data.out)["best"].is_null());
}

TEST_F(Advise, RefusesWhatIsWrong) {
  expect_error(layline("advise --model lama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048"),
               {"lama-13b", "llama-13b"});
  expect_error(layline("advise " + kPaperJob + " --runs nowhere.csv"), {"nowhere.csv"});
  expect_error(layline("advise " + kPaperJob + " --rusn x"), {"--rusn", "--runs"});
  write_text(path("empty.csv"), "");
  expect_error(layline("advise " + kPaperJob + " --runs empty.csv"), {"empty.csv"});
}

TEST_F(Advise, FitsAHundredColumns) {
  std::istringstream lines(layline("advise " + kPaperJob + kRuns).out);
  for (std::string line; std::getline(lines, line);) {
    if (has(line, " · ")) continue;  // the job's title
    const auto cells = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(cells, 100) << line;
  }
}

TEST_F(Study, PrintsTablesAndWritesPredictedRecords) {
  write_text(path("study.json"), kStudy);
  const Result result = layline("study study.json --output predicted.csv");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "micro-batch-1")) << result.out;
  EXPECT_TRUE(has(result.out, "2 jobs")) << result.out;
  const runs::RunTable table = runs::read_runs(path("predicted.csv"));
  ASSERT_FALSE(table.records.empty());
  for (const runs::RunRecord& record : table.records) EXPECT_FALSE(record.status);
  // Predicted rows are no measured ones, wherever they are read.
  const Result validated = layline("validate --json predicted.csv");
  EXPECT_EQ(validated.code, 0) << validated.err;
  EXPECT_EQ(json::parse(validated.out)["overall"]["num_timed"], 0);
}

TEST_F(Study, WritesJson) {
  write_text(path("study.json"), kStudy);
  const Result result = layline("study study.json --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const json study = json::parse(result.out);
  EXPECT_EQ(study["schema_version"], 1);
  EXPECT_EQ(study["num_jobs"], 2);
  EXPECT_EQ(study["jobs"].size(), 2u);
  EXPECT_EQ(study["jobs"][0]["rules"].size(), study["rules"].size());
}

TEST_F(Study, GivesTheSameBytesTwice) {
  write_text(path("study.json"), kStudy);
  EXPECT_EQ(layline("study study.json --json --output a.csv").out,
            layline("study study.json --json --output b.csv").out);
  EXPECT_EQ(read_text(path("a.csv")), read_text(path("b.csv")));
}

TEST_F(Study, ExitsWithThreeWhereNothingFitsAnywhere) {
  write_text(path("study.json"), R"({"models": ["llama-65b"], "clusters": ["a100-40gb"], "engines": ["aleph-scaling"],
    "gpus": [8], "sequence_lengths": [2048], "global_batch_tokens": [1048576]})");
  const Result result = layline("study study.json");
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(has(result.out, "1 jobs, 1 without a layout that fits")) << result.out;
}

TEST_F(Study, RefusesWhatIsWrongAndWritesNothing) {
  write_text(path("bad.json"), "{\"models\": [\"llama-13b\"], \"gpu\": [8]}");
  expect_error(layline("study bad.json --output out.csv"), {"bad.json", "$.gpu", "did you mean \"gpus\""});
  EXPECT_FALSE(std::filesystem::exists(path("out.csv")));
  expect_error(layline("study nowhere.json"), {"nowhere.json"});
  write_text(path("study.json"), kStudy);
  expect_error(layline("study study.json --output nowhere/out.csv"), {"nowhere"});
  expect_error(layline("study study.json --output out.csv --report page.pdf"),
               {"page.pdf", ".html, .md, .json or .txt"});
  expect_error(layline("study study.json --output out.html --report out.html"), {"--report", "--output"});
  EXPECT_FALSE(std::filesystem::exists(path("out.csv")));
}

}  // namespace
}  // namespace layline::test
