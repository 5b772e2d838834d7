// `layline train` with shell scripts in place of layline-train: what is checked before anything starts, and how ranks
// are started, watched and ended.
#include <chrono>
#include <csignal>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

const std::string kSleep = "sleep 100";

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Train : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write_text(path("corpus"), std::string(1000, 'x'));
    write_text(path("run.json"), R"({"model": "llama-tiny", "sequence_length": 64, "global_batch": 32, "steps": 3,
      "data": {"train": "corpus"}})");
  }

  // A run of `num_ranks` ranks that are this shell script.
  Result train(int num_ranks, const std::string& script, const std::string& prefix = "",
               const std::string& flags = "") const {
    write_text(path("rank"), "#!/bin/bash\n" + script + "\n");
    std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
    return shell(prefix + "{} train run.json --program ./rank --nproc " + std::to_string(num_ranks) + " " + flags);
  }

  // No rank, and nothing that a rank started, is left. They are given a moment: killing is not waiting.
  void expect_nobody_left() const {
    for (int attempt = 0; attempt < 50; ++attempt) {
      if (num_processes() == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << num_processes() << " processes are left";
  }

  // Starts a run in the background, sends it signals when every rank has said "up", and waits for it.
  Result interrupted(int num_ranks, const std::string& script, const std::string& signals) const {
    write_text(path("rank"), "#!/bin/bash\n" + script + "\n");
    std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
    const std::string count = std::to_string(num_ranks);
    return shell("{} train run.json --program ./rank --nproc " + count +
                 " > out.txt & pid=$!; for i in $(seq 500); do [ $(grep -c up out.txt) = " + count +
                 " ] && break; sleep 0.01; done; " + signals + " wait $pid; code=$?; cat out.txt; exit $code");
  }
};

TEST_F(Train, StartsEveryRankWithItsEnvironment) {
  const Result result =
      train(4, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $TORCH_FR_BUFFER_SIZE");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::istringstream lines(result.out);
  std::multiset<std::string> ranks;
  for (std::string line; std::getline(lines, line);) ranks.insert(line);
  EXPECT_EQ(ranks, (std::multiset<std::string>{"0 0 4 4 127.0.0.1 0", "1 1 4 4 127.0.0.1 0", "2 2 4 4 127.0.0.1 0",
                                               "3 3 4 4 127.0.0.1 0"}));
}

TEST_F(Train, PassesTheRunAndItsOverridesOn) {
  write_text(path("rank"), "#!/bin/bash\nprintf '%s|' \"$@\"");
  std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
  const Result result = layline("train run.json --program ./rank --set seed=3 --set 'layout=dp1 mb2'");
  EXPECT_EQ(result.out, "run.json|--set=seed=3|--set=layout=dp1 mb2|") << result.err;
}

TEST_F(Train, DividesTheCoresUnlessTold) {
  const int cores = std::stoi(shell("nproc").out);
  EXPECT_EQ(train(1, "echo $OMP_NUM_THREADS", "unset OMP_NUM_THREADS; ").out, std::to_string(cores) + "\n");
  EXPECT_EQ(train(cores == 1 ? 1 : 2, "[ $RANK = 0 ] && echo $OMP_NUM_THREADS; true", "unset OMP_NUM_THREADS; ").out,
            std::to_string(std::max(1, cores / 2)) + "\n");
  EXPECT_EQ(train(1, "echo $OMP_NUM_THREADS", "OMP_NUM_THREADS=7 ").out, "7\n");
  EXPECT_EQ(train(1, "echo $TORCH_FR_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE=9 ").out, "9\n");
}

TEST_F(Train, HidesOtherLaunchersFromItsRanks) {
  EXPECT_EQ(train(1, "echo $RANK,$SLURM_PROCID,$SLURM_NTASKS,$OMPI_COMM_WORLD_RANK,$MASTER_PORT",
                  "RANK=5 WORLD_SIZE=9 SLURM_PROCID=1 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=1 MASTER_ADDR=example.org ")
                .out.substr(0, 5),
            "0,,,,");
}

TEST_F(Train, GivesItsRanksAnEmptyInput) { EXPECT_EQ(train(1, "cat; echo done", "echo something | ").out, "done\n"); }

TEST_F(Train, MistakesAreOneLineAndNothingIsStarted) {
  const struct {
    const char* arguments;
    std::vector<std::string> parts;
  } table[] = {
      {"missing.json", {"missing.json: cannot read"}},
      {"run.json --set seeed=3", {"--set seeed=3: $.seeed: unknown key", "did you mean \"seed\"?"}},
      {"run.json --set steps=x", {"$.steps: found \"x\""}},
      {"run.json --set data.train=corpse",
       {"--set data.train=corpse: $.data.train: corpse: found neither", "did you mean \"corpus\"?"}},
      {"run.json --set layout=tp4 --nproc 4",
       {"--set layout=tp4: $.layout: illegal layout \"tp4\": tp 4 does not divide 6 heads"}},
      {"run.json --set layout=dp2 --nproc 3", {"it is for 2 ranks, and 3 are started"}},
      {"run.json --set device=cuda", {"no CUDA support"}},
      {"run.json --set checkpoint.directory=run.json",
       {"$.checkpoint.directory: \"run.json\" is a file, want a folder"}},
      {"run.json --set metrics=no/such/folder.jsonl", {"$.metrics: "}},
      {"run.json --set model=gpt3-175b", {"$.model: gpt3-175b has LayerNorm"}},
      {"run.json --nproc 0", {"--nproc"}},
      {"run.json --nproc many", {"--nproc", "many"}},
      {"run.json --nprocs 2", {"--nprocs", "did you mean \"--nproc\"?"}},
      {"run.json more.json", {"more.json"}},
      {"", {"run"}},
  };
  write_text(path("rank"), "#!/bin/bash\ntouch started");
  std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
  for (const auto& row : table) {
    SCOPED_TRACE(row.arguments);
    expect_error(layline("train --program ./rank " + std::string(row.arguments)), row.parts);
  }
  EXPECT_FALSE(std::filesystem::exists(path("started")));
}

TEST_F(Train, SaysWhenTheTrainerWasNotBuilt) {
  expect_error(layline("train run.json --program ./layline-train"),
               {"./layline-train was not built", "setup.sh torch"});
}

TEST_F(Train, OnlyChecksWhenAsked) {
  const Result result = layline("train run.json --nproc 4 --check --program ./rank");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "run.json: good")) << result.out;
  EXPECT_TRUE(has(result.out, "the planner's first of")) << result.out;
}

TEST_F(Train, NamesTheRankThatWasKilledAndEndsTheOthers) {
  const auto start = Clock::now();
  const Result result = train(4, "[ $RANK = 2 ] && { sleep 0.1; kill -9 $$; }; " + kSleep, "", "--grace-seconds 0.8");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 2 was killed by signal 9 (SIGKILL)\n");
  EXPECT_GT(seconds_since(start), 0.9);  // the others were given time to end by themselves
  EXPECT_LT(seconds_since(start), 1.8);
  expect_nobody_left();
}

TEST_F(Train, RanksThatDoNotTerminateAreKilled) {
  const auto start = Clock::now();
  const Result result =
      train(2, "[ $RANK = 1 ] && exit 1; trap '' TERM; while true; do sleep 0.05; done", "", "--grace-seconds 0.2");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 1 ended with exit code 1 and did not say why\n");
  EXPECT_LT(seconds_since(start), 2.5);
  expect_nobody_left();
}

TEST_F(Train, RanksThatEndByThemselvesAreNotWaitedFor) {
  const auto start = Clock::now();
  const Result result = train(3, "[ $RANK = 1 ] && kill -SEGV $$; sleep 0.2; exit 1");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 1 was killed by signal 11 (SIGSEGV)\n");
  EXPECT_LT(seconds_since(start), 3);
}

TEST_F(Train, WhatARankSaidIsNotSaidAgain) {
  const Result result =
      train(3, "[ $RANK = 1 ] && { echo 'error: rank 1: out of memory' >&2; exit 1; }; sleep 0.1; exit 1");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: rank 1: out of memory\n");
}

TEST_F(Train, WhatOthersSayOfAKilledRankIsNotSaidAgain) {
  const Result result = train(12,
                              "[ $RANK = 1 ] && kill -9 $$; sleep 0.3; [ $RANK = 0 ] && { "
                              "echo 'error: rank 1: no sign of life for 4 s' >&2; echo 'warning: rank 1' >&2; "
                              "echo 'error: rank 11: the disk is full' >&2; }; exit 1");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err,
            "error: rank 1 was killed by signal 9 (SIGKILL)\nwarning: rank 1\nerror: rank 11: the disk is full\n");
}

TEST_F(Train, ARankThatEndsWithoutAWordIsNamed) {
  EXPECT_EQ(train(2, "[ $RANK = 1 ] && exit 1; exit 0").err,
            "error: rank 1 ended with exit code 1 and did not say why\n");
  EXPECT_EQ(train(2, "[ $RANK = 1 ] && exit 77; exit 0").err, "error: rank 1 ended with exit code 77\n");
}

TEST_F(Train, WarningsOfRanksArePassedOnLineByLine) {
  const Result result =
      train(8, "for i in 1 2 3 4 5; do printf 'warning of' >&2; printf ' rank %s\\n' $RANK >&2; done");
  EXPECT_EQ(result.code, 0);
  std::istringstream lines(result.err);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(line.size(), 17u) << line;
  EXPECT_EQ(count, 40);
}

TEST_F(Train, TheExitCodeIsTheGravest) {
  EXPECT_EQ(train(3, "exit 0").code, 0);
  EXPECT_EQ(train(3, "exit $RANK").code, 2);
  EXPECT_EQ(train(3, "[ $RANK = 0 ] && exit 2; exit 1").code, 2);
  EXPECT_EQ(train(3, "[ $RANK = 0 ] && exit 5; exit 0").code, 1);
  EXPECT_EQ(train(2, "[ $RANK = 0 ] && kill -9 $$; exit 0").code, 1);
}

TEST_F(Train, RanksThatFinishEarlyAreNoFailure) { EXPECT_EQ(train(3, "[ $RANK = 0 ] && sleep 0.5; exit 0").code, 0); }

TEST_F(Train, ProgramsThatCannotStartAreAFailure) {
  write_text(path("rank"), "#!/no/such/interpreter\n");
  std::filesystem::permissions(path("rank"), std::filesystem::perms::owner_all);
  const Result result = layline("train run.json --program ./rank");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "error: cannot start ./rank: No such file or directory\n");
}

TEST_F(Train, AnInterruptIsPassedOnOnceAndWaitedFor) {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const std::string name(signal);
    const Result result = interrupted(3,
                                      "exec 2>/dev/null; trap 'echo saved; sleep 0.3; exit " + std::to_string(code) +
                                          "' " + name + "; echo up; while true; do sleep 0.05; done",
                                      "kill -" + name + " $pid;");
    EXPECT_EQ(result.code, code) << name << result.err;
    EXPECT_EQ(result.err, "") << name;
    std::istringstream lines(result.out);
    int saved = 0;
    for (std::string line; std::getline(lines, line);) saved += line == "saved" ? 1 : 0;
    EXPECT_EQ(saved, 3) << name << result.out;
    expect_nobody_left();
  }
}

TEST_F(Train, RanksThatKnowNoInterruptAreEndedByIt) {
  const Result result = interrupted(2, "echo up; " + kSleep, "kill -INT $pid;");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.err, "");
  expect_nobody_left();
}

TEST_F(Train, ASecondInterruptKills) {
  const auto start = Clock::now();
  const Result result = interrupted(2, "trap '' INT TERM; echo up; while true; do sleep 0.05; done",
                                    "kill -INT $pid; sleep 0.3; kill -INT $pid;");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_LT(seconds_since(start), 5);
  expect_nobody_left();
}

TEST_F(Train, NobodySurvivesTheLauncher) {
  const Result result = interrupted(3, "echo up; while true; do sleep 0.05; done", "kill -9 $pid;");
  EXPECT_EQ(result.code, 137);
  expect_nobody_left();
}

TEST_F(Train, WhatARankStartedEndsWithIt) {
  const Result result = train(2, kSleep + " & exit 0");
  EXPECT_EQ(result.code, 0);
  expect_nobody_left();
}

TEST_F(Train, ItsOutputMayGoIntoAPipeThatIsClosed) {
  const Result result =
      train(2, "trap '' PIPE; for i in 1 2 3 4 5; do echo line; echo line >&2; sleep 0.02; done 2>/dev/null; exit 0");
  EXPECT_EQ(result.code, 0) << result.err;
  write_text(path("rank"),
             "#!/bin/bash\ntrap '' PIPE; for i in 1 2 3 4 5; do echo line; sleep 0.02; done; touch end$RANK");
  const Result cut = shell("{} train run.json --program ./rank --nproc 2 2>/dev/null | head -1; echo ${PIPESTATUS[0]}");
  EXPECT_TRUE(std::filesystem::exists(path("end0")) && std::filesystem::exists(path("end1"))) << cut.out;
}

}  // namespace
}  // namespace layline::test
