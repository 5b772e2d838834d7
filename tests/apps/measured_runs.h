// For tests of commands that measure runs: a shell script in place of layline-train, and the records that it leads to.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "layline/runs/run_record.h"
#include "tests/apps/program.h"

namespace layline::test {

// Reads its RUN.json; `step 1 0.5` says that step 1 took half a second.
inline const std::string kRankPrelude = R"(#!/bin/bash
value() { grep -o "\"$1\": *\"[^\"]*\"" $run | cut -d'"' -f4; }
step() {
  [ $RANK = 0 ] && echo "{\"step\": $1, \"step_seconds\": $2, \"peak_memory_bytes\": 1000, \
\"peak_memory_bytes_by_stage\": [1000]}" >> "$metrics"
}
run=$1; layout=$(value layout); metrics=$(value metrics)
)";
inline const std::string kGoodRank = "step 1 0.9; step 2 0.5; step 3 0.5\n";

class MeasuredRuns : public Program {
 protected:
  void write_rank(const std::string& script) const {
    write_text(path("rank"), kRankPrelude + script + "\n");
    std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
  }

  // Starts a command in the background, waits until a run says so in up.txt, and sends it a signal.
  Result interrupted(const std::string& command, const std::string& signal) const {
    return shell(command +
                 "> out.txt & pid=$!; for i in $(seq 500); do [ -e up.txt ] && break; sleep 0.01; done; kill -" +
                 signal + " $pid; wait $pid; code=$?; cat out.txt; exit $code");
  }

  std::vector<runs::RunRecord> records() const { return runs::read_runs(path("runs.csv")).records; }

  std::map<std::string, runs::RunRecord> by_layout() const {
    std::map<std::string, runs::RunRecord> found;
    for (const runs::RunRecord& record : records()) found[runs::note(record, "layout")] = record;
    return found;
  }

  // No process that runs in the test's folder, or comes to run there, is left. They are given a moment.
  void expect_nobody_left() const {
    for (int attempt = 0; attempt < 100; ++attempt) {
      if (num_processes() == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << num_processes() << " processes are left";
  }
};

}  // namespace layline::test
