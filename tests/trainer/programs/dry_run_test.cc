// Dry runs against the peaks that real runs of several processes write into their metrics.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;

struct Case {
  int num_ranks;
  const char* layout;
  const char* more = "";  // of the command line
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.num_ranks << " ranks, " << c.layout << " " << c.more;
}

class DryRunProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "In the beginning God created the heaven and the earth. ";
    write_text(path("corpus"), text);
    write_text(path("run.json"), R"({"model": {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
      "num_attention_heads": 4, "num_hidden_layers": 4, "vocab_size": 1000}, "sequence_length": 128,
      "global_batch": 8, "steps": 2, "data": {"train": "corpus"}, "metrics": "metrics.jsonl"})");
  }
};

// A message is freed when it has been sent. Where the next stage is late, which a dry run does not know, one more of
// them is still there: the tokens of a micro-batch of one or two sequences, 256 numbers each.
double late_bytes(const Case& c) {
  const auto has = [](std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  if (!has(c.layout, "pp")) return 0;
  const double sequences = has(c.layout, "mb2") ? 2 : 1;
  const double element = has(c.more, "fp32") ? 4 : 2;
  return sequences * 128 * 256 * element;
}

class DryRunOfProcesses : public DryRunProgram, public testing::WithParamInterface<Case> {};

TEST_P(DryRunOfProcesses, HasTheirPeakInEveryStage) {
  const Case& c = GetParam();
  const std::string flags =
      fmt::format("train run.json --nproc {} --set 'layout={}' {}", c.num_ranks, c.layout, c.more);
  const Result real = layline(flags);
  ASSERT_EQ(real.code, 0) << real.err;
  const Result dry = layline(flags + " --dry-run --json");
  ASSERT_EQ(dry.code, 0) << dry.err;
  const std::string metrics = read_text(path("metrics.jsonl"));
  const json row = json::parse(metrics.substr(metrics.rfind('\n', metrics.size() - 2) + 1));
  const json report = json::parse(dry.out);
  const json& wanted = row["peak_memory_bytes_by_stage"];
  const json& found = report["peak_memory_bytes_by_stage"];
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t stage = 0; stage < wanted.size(); ++stage) {
    const double want = wanted[stage].get<double>();
    const double dry_bytes = found[stage].get<double>();
    EXPECT_LE(dry_bytes, 1.001 * want) << "stage " << stage;
    EXPECT_GE(dry_bytes + late_bytes(c), 0.999 * want) << "stage " << stage;
    RecordProperty(fmt::format("difference_{}", stage), fmt::format("{:.6f}", found[stage].get<double>() / want - 1));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DryRunOfProcesses,
    testing::Values(Case{1, "mb2"}, Case{1, "mb2", "--set precision=fp32"}, Case{1, "mb2 ckpt=full:2"},
                    Case{2, "dp2 mb2"}, Case{2, "dp2 mb2 zero0"}, Case{2, "dp2 mb2", "--set precision=fp32"},
                    Case{2, "tp2 mb2"}, Case{2, "tp2 mb2 sp"}, Case{2, "tp2 mb2 sp ckpt=selective"},
                    Case{2, "tp2 mb2 sp", "--set precision=fp32"}, Case{2, "pp2 mb1"}, Case{2, "pp2 mb1 sched=gpipe"},
                    Case{2, "pp2 mb1 sched=zb"}, Case{2, "pp2 vp2 mb1"}, Case{2, "pp2 mb2 ckpt=full"},
                    Case{2, "pp2 mb1", "--set precision=fp32"}, Case{2, "pp2 mb1 attn=unfused norm=unfused"},
                    Case{4, "pp4 mb1"}, Case{4, "dp2 tp2 mb1 sp"}, Case{4, "dp2 pp2 mb1"}));

TEST_F(DryRunProgram, NeedsNoClusterForALargeModel) {
  const Result result = layline(
      "train run.json --nproc 1024 --dry-run --json --set model=llama-2-70b --set 'layout=tp8 pp8 mb1 sp' "
      "--set sequence_length=2048 --set global_batch=256");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json report = json::parse(result.out);
  EXPECT_EQ(report["num_ranks"], 1024);
  ASSERT_EQ(report["stages"].size(), 8u);
  EXPECT_EQ(report["stages"][3]["rank"], 3 * 128);
  EXPECT_EQ(report["peak_memory_bytes"], report["peak_memory_bytes_by_stage"][0]);
  double sum = 0;
  for (const json& bytes : report["stages"][3]["memory_bytes"]) sum += bytes.get<double>();
  EXPECT_EQ(sum, report["stages"][3]["peak_memory_bytes"]);
}

TEST_F(DryRunProgram, SaysWhatDoesNotFit) {
  const Result result = layline("train run.json --dry-run --set memory_limit_bytes=20000000 --set layout=mb2");
  EXPECT_EQ(result.code, 3);
  EXPECT_TRUE(has(result.out, "out of memory: stage 0 needs ")) << result.out;
}

TEST_F(DryRunProgram, ChecksWhatARunWouldCheck) {
  expect_error(layline("train run.json --dry-run --set data.train=corpse"), {"corpse", "corpus"});
  expect_error(layline("train run.json --dry-run --set sequence_length=100000"), {"corpus"});
  expect_error(layline("train run.json --dry-run --nproc 4 --set 'layout=dp2'"), {"dp2"});
  expect_error(layline("train run.json --json"), {"--dry-run"});
  expect_error(layline("train run.json --nproc 5000"), {"--nproc", "4096"});
}

}  // namespace
}  // namespace layline::test
