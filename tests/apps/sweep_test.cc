// `layline sweep` with a shell script in place of layline-train: what is recorded of runs that work, fail, hang or
// leave something behind, and what is left after the sweep itself is ended.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "layline/runs/csv.h"
#include "tests/apps/measured_runs.h"

namespace layline::test {
namespace {

using runs::RunStatus;

const std::string kMb1Hangs = R"(case "$layout" in *mb1) echo up > up.txt; exec sleep 100;; esac; )";

class Sweep : public MeasuredRuns {
 protected:
  void SetUp() override {
    MeasuredRuns::SetUp();
    write_text(path("corpus"), std::string(1000, 'x'));
    write_sweep(R"({"mb": [1, 2]})");
    write_rank(kGoodRank);
  }

  void write_sweep(const std::string& layouts, const std::string& more = "", const std::string& ranks = "1") const {
    write_text(path("sweep.json"), R"({"base": {"model": "llama-tiny", "sequence_length": 64, "global_batch": 4,
      "steps": 3, "data": {"train": "corpus"}}, "ranks": )" +
                                       ranks + ", \"layouts\": " + layouts + more + "}");
  }

  Result sweep(const std::string& flags = "", const std::string& prefix = "") const {
    return shell(prefix + kCommand + flags);
  }

  // What came of the only run.
  runs::RunRecord only_record() const {
    const auto all = records();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? runs::RunRecord{} : all.front();
  }

  const std::string kCommand = "{} sweep sweep.json --output runs.csv --program ./rank ";
};

TEST_F(Sweep, RecordsWhatARunMeasured) {
  write_sweep(R"(["mb4"])");
  const Result result = sweep();
  EXPECT_EQ(result.code, 0) << result.err;
  const runs::RunRecord record = only_record();
  EXPECT_EQ(record.status, RunStatus::kOk);
  EXPECT_DOUBLE_EQ(record.step_time_s.value_or(0), 0.5);  // the first step does not count
  EXPECT_DOUBLE_EQ(record.tokens_per_s_per_gpu.value_or(0), 4 * 64 / 0.5);
  EXPECT_DOUBLE_EQ(record.peak_memory_GiB.value_or(0), 1000.0 / (1 << 30));
  EXPECT_EQ(record.micro_batch_size, 4);
  EXPECT_EQ(runs::note(record, "peak_memory_bytes_by_stage"), "1000");
  EXPECT_FALSE(std::filesystem::exists(path("runs.csv.running")));
}

TEST_F(Sweep, ItsFileIsWhatValidateReads) {
  write_sweep(R"({"mb": [1, 2, 4], "ckpt": ["none", "full"]})");
  ASSERT_EQ(sweep().code, 0);
  const Result result = layline("validate runs.csv");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "sweep, 1 ranks")) << result.out;
}

TEST_F(Sweep, RunsTheMostPromisingFirst) {
  write_sweep(R"({"mb": [1, 2, 4], "ckpt": ["none", "full"]})");
  ASSERT_EQ(sweep().code, 0);
  const runs::CsvTable csv = runs::parse_csv(read_text(path("runs.csv")), "runs.csv");
  const auto column = std::find(csv.header.begin(), csv.header.end(), "predicted_step_seconds") - csv.header.begin();
  std::vector<double> predicted;
  for (const auto& row : csv.rows) predicted.push_back(std::stod(row.fields[static_cast<size_t>(column)]));
  EXPECT_EQ(predicted.size(), 6u);
  EXPECT_TRUE(std::is_sorted(predicted.begin(), predicted.end()));
}

TEST_F(Sweep, DoesNotRunTwiceWhatIsRecorded) {
  ASSERT_EQ(sweep().code, 0);
  const std::string before = read_text(path("runs.csv"));
  write_rank("exit 1");
  const Result again = sweep("--json");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_text(path("runs.csv")), before);
  EXPECT_TRUE(has(again.out, "\"num_done\": 2")) << again.out;
}

TEST_F(Sweep, GoesOnWhenTheSweepHasGrown) {
  ASSERT_EQ(sweep().code, 0);
  write_sweep(R"({"mb": [1, 2, 4]})");
  const Result result = sweep();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(records().size(), 3u);
  EXPECT_TRUE(has(result.out, "3 runs, 2 done before")) << result.out;
}

TEST_F(Sweep, RepeatsEveryLayoutAsOftenAsAsked) {
  write_sweep(R"({"mb": [1, 2]})", R"(, "repeats": 3)");
  ASSERT_EQ(sweep().code, 0);
  const auto runs = records();
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_NE(runs[0].micro_batch_size, runs[1].micro_batch_size);  // all once before any twice
}

TEST_F(Sweep, TellsHowRunsFailed) {
  const struct {
    std::string script;
    RunStatus status;
    std::string reason;
  } table[] = {
      {"echo 'error: rank 0: out of memory: 5 GiB, the limit is 4' >&2; exit 1", RunStatus::kOom,
       "out of memory: 5 GiB"},
      {"step 1 0.5; echo 'error: loss is not a number' >&2; exit 1", RunStatus::kFail, "loss is not a number"},
      {"exit 7", RunStatus::kFail, "exit code 7"},
      {"step 1 0.5", RunStatus::kFail, "1 of 3 steps"},
      {"kill -SEGV $$", RunStatus::kFail, "signal 11 (SIGSEGV)"},
      {"echo 'error: a; b' >&2; echo x >&2; exit 1", RunStatus::kFail, "a, b"},
      {"kill -KILL $PPID; sleep 100", RunStatus::kFail, "killed by signal 9 (SIGKILL)"},
  };
  for (const auto& row : table) {
    std::filesystem::remove(path("runs.csv"));
    write_sweep(R"(["mb4"])");
    write_rank(row.script);
    EXPECT_EQ(sweep().code, 0);
    EXPECT_EQ(only_record().status, row.status) << row.script;
    const std::string reason = runs::note(only_record(), "reason");
    EXPECT_TRUE(has(reason, row.reason)) << row.script << ": " << reason;
  }
  expect_nobody_left();
}

TEST_F(Sweep, EndsARunThatHangs) {
  write_sweep(R"(["mb4"])", R"(, "time_limit_seconds": 2)");
  write_rank("step 1 0.01; sleep 100 & kill -STOP $$");
  const Result result = sweep();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(only_record().status, RunStatus::kTimeout);
  EXPECT_TRUE(has(runs::note(only_record(), "reason"), "1 of 3 steps")) << runs::note(only_record(), "reason");
  expect_nobody_left();
}

TEST_F(Sweep, EndsWhatARunLeavesBehind) {
  write_sweep(R"(["mb4"])");
  write_rank("(setsid sleep 100 &) ; setsid bash -c 'sleep 100 & wait' & disown; " + kGoodRank);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(only_record().status, RunStatus::kOk);
  EXPECT_EQ(num_processes(), 0);
}

TEST_F(Sweep, LimitsTheMemoryOfRanksBeyondTheirOwnLimit) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer maps far more memory than such a limit allows";
#endif
  write_sweep(R"(["mb4"])", R"(, "memory_limit_bytes": 1073741824)");
  write_rank("ulimit -d > limit.txt; " + kGoodRank);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(read_text(path("limit.txt")), std::to_string(3 << 20) + "\n");  // KiB
  EXPECT_EQ(only_record().status, RunStatus::kOk);
}

TEST_F(Sweep, GivesUpARunThatIsHopelesslySlow) {
  write_sweep(R"(["mb4", "mb1 ckpt=full"])", R"(, "stop_when_slower_than_best_by": 2)");
  write_rank(R"(case "$layout" in *full) step 1 9; step 2 1.1; exec sleep 100;; esac; )" + kGoodRank);
  const Result result = sweep();
  EXPECT_EQ(result.code, 0) << result.err;
  const runs::RunRecord slow = by_layout()["dp1 tp1 pp1 mb1 ckpt=full"];
  EXPECT_EQ(slow.status, RunStatus::kTimeout);
  EXPECT_TRUE(has(runs::note(slow, "reason"), "given up after 2 of 3 steps")) << runs::note(slow, "reason");
  EXPECT_FALSE(slow.step_time_s.has_value());
  EXPECT_EQ(runs::note(slow, "slower_than_seconds"), "1.1");
}

TEST_F(Sweep, LosesNothingWhenInterrupted) {
  write_rank(kMb1Hangs + kGoodRank);
  for (const auto& [signal, code] : std::map<std::string, int>{{"INT", 130}, {"TERM", 143}}) {
    const Result result = interrupted(kCommand, signal);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_TRUE(has(result.err, "goes on from here")) << result.err;
    for (const runs::RunRecord& record : records()) EXPECT_EQ(record.status, RunStatus::kOk);
    expect_nobody_left();
    std::filesystem::remove(path("up.txt"));
  }
  write_rank(kGoodRank);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(records().size(), 2u);
}

TEST_F(Sweep, RepeatsOnlyTheRunInFlightAfterAKill) {
  write_sweep(R"({"mb": [1, 2, 4]})");
  write_rank(R"(echo "$layout" >> ran.txt; )" + kMb1Hangs + kGoodRank);
  const Result killed = interrupted(kCommand, "KILL");
  EXPECT_EQ(killed.code, 137);
  expect_nobody_left();
  const auto num_ran = [&] {
    const std::string ran = read_text(path("ran.txt"));
    return std::count(ran.begin(), ran.end(), '\n');
  };
  const auto num_before = num_ran();
  EXPECT_EQ(static_cast<int64_t>(records().size()), num_before - 1);
  write_rank(R"(echo "$layout" >> ran.txt; )" + kGoodRank);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(by_layout().size(), 3u);
  EXPECT_EQ(records().size(), 3u);
  EXPECT_EQ(num_ran(), 4);
}

TEST_F(Sweep, CutsARowThatAPowerFailureTore) {
  ASSERT_EQ(sweep().code, 0);
  const std::string whole = read_text(path("runs.csv"));
  write_text(path("runs.csv"), whole.substr(0, whole.size() - 40));
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(read_text(path("runs.csv")).substr(0, whole.size() / 2), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(by_layout().size(), 2u);
}

TEST_F(Sweep, AFullDiskEndsItAndLosesNoRow) {
  write_sweep(R"({"mb": [1, 2, 4], "ckpt": ["none", "full"]})");
  // No file may grow beyond 4 KiB: the header and a few rows.
  const Result result = sweep("", "trap '' XFSZ; ulimit -f 4; ");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "runs.csv: cannot write")) << result.err;
  EXPECT_GT(records().size(), 0u);
  EXPECT_LT(records().size(), 6u);
  EXPECT_EQ(sweep().code, 0);
  EXPECT_EQ(by_layout().size(), 6u);
}

TEST_F(Sweep, RefusesAFileThatIsInUse) {
  write_rank(kMb1Hangs + kGoodRank);
  const Result result = shell(kCommand +
                              "> out.txt & pid=$!; for i in $(seq 500); do [ -e up.txt ] && break; sleep 0.01; "
                              "done; " +
                              kCommand + "; code=$?; kill $pid; wait $pid 2> /dev/null; exit $code");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "runs.csv: another process is appending to it")) << result.err;
}

TEST_F(Sweep, RefusesRowsThatAreNotItsOwn) {
  ASSERT_EQ(sweep().code, 0);
  const std::string good = read_text(path("runs.csv"));
  const struct {
    std::string change;
    std::vector<std::string> parts;
  } table[] = {
      {"sed -i 's/machine=[^;]*/machine=Cray-1/' runs.csv", {"runs.csv:2", "another machine (Cray-1, not "}},
      {"sed -i 's/sweep=sweep,/sweep=other,/' runs.csv", {"runs.csv:2", "another sweep (other, 1 ranks"}},
      {"sed -i 's/run=[0-9a-f]*/run=0/' runs.csv", {"runs.csv:2", "another run (0, not "}},
      {"sed -i 's/^source,/sauce,/' runs.csv", {"runs.csv"}},
      {"echo 'dear diary' > runs.csv", {"runs.csv"}},
      {"cut -d, -f1-41 runs.csv > x; mv x runs.csv", {"runs.csv"}},
      {"cp " + source("data/published/megatron_ci.csv") + " runs.csv", {"runs.csv", "other columns"}},
  };
  for (const auto& row : table) {
    write_text(path("runs.csv"), good);
    ASSERT_EQ(shell(row.change).code, 0);
    const std::string before = read_text(path("runs.csv"));
    expect_error(sweep(), row.parts);
    EXPECT_EQ(read_text(path("runs.csv")), before);
  }
}

TEST_F(Sweep, SaysForEachAxisWhyNothingIsLegal) {
  write_sweep(R"({"tp": [4, 5], "mb": [1]})", "", "4");
  expect_error(sweep(), {"sweep.json: $.layouts: none of 2 layouts is legal on 4 ranks",
                         "tp4: tp 4 does not divide 6 heads", "tp5: "});
  EXPECT_FALSE(std::filesystem::exists(path("runs.csv")));
}

TEST_F(Sweep, MistakesAreOneLineAndNothingIsRun) {
  const struct {
    std::string layouts, more;
    std::vector<std::string> parts;
  } table[] = {
      {"[]", "", {"$.layouts: found []"}},
      {R"({"tq": [1]})", "", {"$.layouts: ", "axis \"tq\"", "did you mean \"tp\"?"}},
      {R"({"tp": []})", "", {"$.layouts.tp: found []"}},
      {R"({"tp": ["a"]})", "", {"$.layouts.tp[0]: found \"a\""}},
      {R"({"ckpt": ["most"]})", "", {"$.layouts.ckpt[0]", "most"}},
      {R"("al")", "", {"$.layouts: found \"al\""}},
      {R"("all")", R"(, "repeets": 2)", {"repeets", "did you mean \"repeats\"?"}},
      {R"("all")", R"(, "time_limit_seconds": -1)", {"$.time_limit_seconds: "}},
      {R"("all")", R"(, "stop_when_slower_than_best_by": 0.5)", {"$.stop_when_slower_than_best_by: "}},
      {R"("all")", R"(, "repeats": 1, "repeats": 2)", {"repeats"}},
  };
  for (const auto& row : table) {
    write_sweep(row.layouts, row.more);
    expect_error(sweep(), row.parts);
  }
  expect_error(layline("sweep sweep.json"), {"--output"});
  write_sweep(R"("all")");
  std::filesystem::create_directory(path("folder"));
  expect_error(layline("sweep sweep.json --program ./rank --output folder"), {"folder: cannot write"});
  expect_error(layline("sweep none.json --output runs.csv"), {"none.json: cannot read"});
  EXPECT_FALSE(std::filesystem::exists(path("runs.csv")));
}

}  // namespace
}  // namespace layline::test
