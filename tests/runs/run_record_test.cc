#include "layline/runs/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/runs/csv.h"

namespace layline::runs {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader =
    "hardware,gpus_total,model,layers,hidden,heads,seq_len,global_batch_sequences,micro_batch_size,tp,pp,dp,"
    "tokens_per_s_per_gpu,step_time_s,status,notes\n";

std::string error_of(const std::string& text) {
  try {
    parse_runs(text, "r.csv");
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

RunRecord record_of(const std::string& row) { return parse_runs(kHeader + row, "r.csv").records.at(0); }

struct PublishedFile {
  std::string name;
  size_t num_rows, num_timed, num_oom;
};
void PrintTo(const PublishedFile& value, std::ostream* out) { *out << value.name; }

class PublishedRuns : public testing::TestWithParam<PublishedFile> {
 protected:
  std::string path() const { return std::string(LAYLINE_SOURCE_DIR "/data/published/") + GetParam().name + ".csv"; }
};

TEST_P(PublishedRuns, AreReadInFull) {
  const RunTable table = read_runs(path());
  EXPECT_EQ(table.columns, run_columns());
  size_t num_timed = 0, num_oom = 0;
  for (const RunRecord& run : table.records) {
    num_timed += run.status == RunStatus::kOk && step_seconds(run);
    num_oom += run.status == RunStatus::kOom;
  }
  EXPECT_EQ(table.records.size(), GetParam().num_rows);
  EXPECT_EQ(num_timed, GetParam().num_timed);
  EXPECT_EQ(num_oom, GetParam().num_oom);
}

TEST_P(PublishedRuns, AreWrittenAsTheyWereReadButForTheLineEnds) {
  const RunTable table = read_runs(path());
  std::string text = format_csv_row(table.columns);
  for (const RunRecord& run : table.records) text += format_csv_row(run.fields);
  std::string original = base::read_file(path());
  std::erase(original, '\r');
  EXPECT_TRUE(text == original);
}

TEST_P(PublishedRuns, KeepEveryValueThroughTheTypedRecord) {
  const RunTable table = read_runs(path());
  std::string text = format_csv_row(run_columns());
  for (const RunRecord& run : table.records) text += format_csv_row(to_fields(run));
  const RunTable again = parse_runs(text, "again.csv");
  ASSERT_EQ(again.records.size(), table.records.size());
  for (size_t i = 0; i < table.records.size(); ++i) {
    ASSERT_EQ(to_fields(again.records[i]), to_fields(table.records[i])) << "row " << i;
    ASSERT_EQ(again.records[i].step_time_s, table.records[i].step_time_s);
    ASSERT_EQ(again.records[i].notes, table.records[i].notes);
  }
}

TEST_P(PublishedRuns, HaveAsManyGpusAsTheirAxesMultiplyTo) {
  for (RunRecord run : read_runs(path()).records) {
    if (!run.gpus_total || !run.dp) continue;
    const int64_t stated = *run.gpus_total;
    run.gpus_total.reset();
    EXPECT_EQ(num_gpus(run), stated) << "line " << run.line;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PublishedRuns,
    testing::Values(PublishedFile{"hagemann2024_a100", 839, 346, 473}, PublishedFile{"nanotron_h100", 1641, 1004, 0},
                    PublishedFile{"megatron_vtrain_a100", 782, 782, 0}, PublishedFile{"bigscience_a100", 174, 164, 10},
                    PublishedFile{"llm_foundry_a100", 223, 223, 0}, PublishedFile{"megatron_papers", 31, 8, 0},
                    PublishedFile{"nemo_h100", 65, 48, 0}, PublishedFile{"megatron_ci", 164, 162, 0}),
    [](const auto& info) { return info.param.name; });

TEST(RunRecord, TakesEmptyFieldsAsNotStated) {
  const RunRecord run = record_of("A100,,m,1,1,1,1,1,1,1,1,,,,,\n");
  EXPECT_FALSE(run.gpus_total.has_value());
  EXPECT_FALSE(run.status.has_value());
  EXPECT_FALSE(run.scored.has_value());
  EXPECT_EQ(run.notes, "");
  EXPECT_EQ(run.line, 2);
}

TEST(RunRecord, DerivesGpusAndStepTimeFromWhatIsStated) {
  const RunRecord from_tokens = record_of("A100,,m,1,1,1,2048,64,1,2,4,8,1024,,ok,\n");
  EXPECT_EQ(num_gpus(from_tokens), 64);
  EXPECT_DOUBLE_EQ(step_seconds(from_tokens).value(), 2.0);
  const RunRecord stated = record_of("A100,64,m,1,1,1,2048,64,1,2,4,8,1024,3.5,ok,\n");
  EXPECT_EQ(step_seconds(stated), 3.5);
  EXPECT_EQ(step_seconds(record_of("A100,,m,1,1,1,2048,64,1,2,4,,1024,,ok,\n")), std::nullopt);
}

TEST(RunRecord, NamesItsSweepByTheNoteOrByWhatWasTrained) {
  const std::string row = "A100,64,Llama,1,1,1,2048,512,1,2,4,8,,,ok,";
  EXPECT_EQ(sweep_name(record_of(row + "sweep=llama_13B; original label: x\n")), "llama_13B");
  EXPECT_EQ(sweep_name(record_of(row + "mem=1; sweep=b \n")), "b");
  EXPECT_EQ(sweep_name(record_of(row + "my sweep=b\n")), "Llama, 64 GPUs, seq 2048, batch 512");
}

TEST(RunRecord, RefusesUnknownColumnsWithTheNearestName) {
  EXPECT_THAT(error_of("hardware,layer\n"), HasSubstr("r.csv:1: no column \"layer\" (did you mean \"layers\"?)"));
}

TEST(RunRecord, RefusesAHeaderWithoutWhatEveryRunNeeds) {
  EXPECT_THAT(error_of("model,layers,hidden,heads,seq_len,global_batch_sequences,micro_batch_size,tp,status\n"),
              HasSubstr("r.csv:1: missing columns hardware, pp"));
}

TEST(RunRecord, SkipsThePredictionsOfAnEarlierValidation) {
  std::string header(kHeader), row = "A100,64,m,1,1,1,1,1,1,1,1,1,,2,ok,n";
  header.pop_back();
  for (const std::string& column : prediction_columns()) {
    header += "," + column;
    row += ",not read";
  }
  const RunTable table = parse_runs(header + "\n" + row + "\n", "r.csv");
  EXPECT_EQ(table.columns.size(), 16u);
  EXPECT_EQ(table.records.at(0).fields.size(), 16u);
  EXPECT_EQ(table.records.at(0).notes, "n");
}

struct BadField {
  std::string name, row, message;
};
void PrintTo(const BadField& value, std::ostream* out) { *out << value.name; }

class MalformedRun : public testing::TestWithParam<BadField> {};

TEST_P(MalformedRun, IsRefusedWithFileLineAndColumn) {
  EXPECT_THAT(error_of(kHeader + GetParam().row + "\n"), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedRun,
    testing::Values(BadField{"Word", "A,x,m,1,1,1,1,1,1,1,1,1,,,ok,", "r.csv:2:gpus_total: found \"x\", want a whole"},
                    BadField{"Zero", "A,0,m,1,1,1,1,1,1,1,1,1,,,ok,", "r.csv:2:gpus_total: found \"0\""},
                    BadField{"Negative", "A,1,m,-1,1,1,1,1,1,1,1,1,,,ok,", "r.csv:2:layers: found \"-1\""},
                    BadField{"Fraction", "A,1,m,1.5,1,1,1,1,1,1,1,1,,,ok,", "r.csv:2:layers: found \"1.5\""},
                    BadField{"Overflow", "A,1,m,1,99999999999999999999,1,1,1,1,1,1,1,,,ok,", "r.csv:2:hidden: found"},
                    BadField{"Huge", "A,1,m,1,1,1,9000000000000000000,1,1,1,1,1,,,ok,", "r.csv:2:seq_len: found"},
                    BadField{"Nan", "A,1,m,1,1,1,1,1,1,1,1,1,,nan,ok,", "r.csv:2:step_time_s: found \"nan\""},
                    BadField{"Infinite", "A,1,m,1,1,1,1,1,1,1,1,1,,inf,ok,", "r.csv:2:step_time_s: found \"inf\""},
                    BadField{"NumberOverflow", "A,1,m,1,1,1,1,1,1,1,1,1,,1e999,ok,", "r.csv:2:step_time_s: found"},
                    BadField{"ZeroTime", "A,1,m,1,1,1,1,1,1,1,1,1,,0,ok,", "r.csv:2:step_time_s: found \"0\""},
                    BadField{"NegativeRate", "A,1,m,1,1,1,1,1,1,1,1,1,-5,,ok,", "r.csv:2:tokens_per_s_per_gpu: found"},
                    BadField{"Unit", "A,1,m,1,1,1,1,1,1,1,1,1,,5 s,ok,", "r.csv:2:step_time_s: found \"5 s\""},
                    BadField{"Blank", "A,1,m,1,1,1,1,1,1, 2,1,1,,,ok,", "r.csv:2:tp: found \" 2\""},
                    BadField{"Status", "A,1,m,1,1,1,1,1,1,1,1,1,,,OK,",
                             "r.csv:2:status: found \"OK\", want one of: ok"}),
    [](const auto& info) { return info.param.name; });

TEST(RunRecord, ReadsWholeNumbersAsSpreadsheetsWriteThem) {
  EXPECT_EQ(record_of("A100,64.0,m,1,1,1,1,1,1,1,1,,,,,\n").gpus_total, 64);
}

RC_GTEST_PROP(RunRecord, KeepsAnyNumberExactly, ()) {
  RunRecord run;
  run.hardware = "A100";
  run.step_time_s =
      *rc::gen::map(rc::gen::inRange<int64_t>(1, 1'000'000'000'000), [](int64_t n) { return double(n) / 7e5; });
  run.gpus_total = *rc::gen::inRange<int64_t>(1, 1'000'000);
  run.sp = *rc::gen::arbitrary<bool>();
  run.status = *rc::gen::element(RunStatus::kOk, RunStatus::kOom, RunStatus::kFail, RunStatus::kUnavailable,
                                 RunStatus::kTimeout);
  run.notes = *rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', ' '));
  const RunRecord read =
      parse_runs(format_csv_row(run_columns()) + format_csv_row(to_fields(run)), "r.csv").records.at(0);
  RC_ASSERT(read.step_time_s == run.step_time_s);
  RC_ASSERT(read.gpus_total == run.gpus_total);
  RC_ASSERT(read.sp == run.sp);
  RC_ASSERT(read.status == run.status);
  RC_ASSERT(read.notes == run.notes);
}

}  // namespace
}  // namespace layline::runs
