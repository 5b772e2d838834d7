#include "layline/runs/run_appender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/runs/csv.h"

namespace layline::runs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Appender : public testing::Test {
 protected:
  Appender() {
    std::string pattern = (fs::temp_directory_path() / "layline-runs-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/runs.csv";
  }
  ~Appender() override { fs::remove_all(folder_); }

  static RunRecord record(int64_t index) {
    RunRecord run;
    run.hardware = "A100";
    run.gpus_total = index;
    run.step_time_s = static_cast<double>(index) + 0.25;
    run.status = RunStatus::kOk;
    run.notes = "a, \"quoted\"\nnote";
    return run;
  }
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() const { return base::read_file(path_); }
  std::string header() const { return format_csv_row(run_columns()); }
  std::string row(int64_t index) const { return format_csv_row(to_fields(record(index))); }
  std::string error_on_opening() const {
    try {
      RunAppender runs(path_);
    } catch (const base::InputError& error) {
      return error.what();
    }
    return "";
  }

  std::string folder_, path_;
};

TEST_F(Appender, GoesOnWhereItEnded) {
  {
    RunAppender(path_).append(record(1));
  }
  RunAppender runs(path_);
  ASSERT_EQ(runs.existing().size(), 1u);
  EXPECT_EQ(runs.existing()[0].gpus_total, 1);
  EXPECT_EQ(runs.num_cut_bytes(), 0);
  runs.append(record(2));
  EXPECT_EQ(content(), header() + row(1) + row(2));
}

TEST_F(Appender, CutsALastRowTornAtAnyByte) {
  const std::string whole = header() + row(1), torn = row(2);
  for (size_t length = 0; length < torn.size(); ++length) {
    put(whole + torn.substr(0, length));
    RunAppender runs(path_);
    ASSERT_EQ(runs.existing().size(), 1u) << length;
    ASSERT_EQ(runs.num_cut_bytes(), static_cast<int64_t>(length));
    runs.append(record(3));
    ASSERT_EQ(content(), whole + row(3)) << length;
  }
}

TEST_F(Appender, CutsAHeaderTornAtAnyByte) {
  for (size_t length = 0; length < header().size(); ++length) {
    put(header().substr(0, length));
    RunAppender(path_).append(record(1));
    ASSERT_EQ(content(), header() + row(1)) << length;
  }
}

TEST_F(Appender, CutsTheNulBytesThatAPowerFailureLeaves) {
  put(header() + row(1) + std::string(100, '\0'));
  EXPECT_EQ(RunAppender(path_).num_cut_bytes(), 100);
  EXPECT_EQ(content(), header() + row(1));
}

TEST_F(Appender, RefusesAnotherHeaderAndLeavesTheFileAlone) {
  const std::string other =
      "hardware,layers,hidden,heads,seq_len,global_batch_sequences,micro_batch_size,tp,pp,status\n";
  put(other);
  EXPECT_THAT(error_on_opening(), HasSubstr("has other columns"));
  EXPECT_EQ(content(), other);
  put("a letter to a friend");
  EXPECT_THAT(error_on_opening(), HasSubstr("is no file of run records"));
  EXPECT_EQ(content(), "a letter to a friend");
}

TEST_F(Appender, RefusesAFileThatAnotherIsAppendingTo) {
  const RunAppender first(path_);
  EXPECT_THAT(error_on_opening(), HasSubstr("another process is appending"));
}

TEST_F(Appender, RefusesAFolderThatIsNotThere) {
  path_ = folder_ + "/missing/runs.csv";
  EXPECT_THAT(error_on_opening(), HasSubstr("cannot write: No such file"));
}

TEST_F(Appender, LosesNoFinishedRowWhenItsProcessIsKilled) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    RunAppender runs(path_);
    for (int64_t i = 1;; ++i) {
      runs.append(record(i));
      const char done = 1;
      if (::write(pipe_ends[1], &done, 1) != 1) ::_exit(1);
    }
  }
  char done = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(::read(pipe_ends[0], &done, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  const RunAppender runs(path_);
  ASSERT_GE(runs.existing().size(), 20u);
  for (size_t i = 0; i < runs.existing().size(); ++i) {
    EXPECT_EQ(to_fields(runs.existing()[i]), to_fields(record(static_cast<int64_t>(i) + 1)));
  }
}

TEST_F(Appender, LeavesNoPartOfARowWhenTheDiskIsFull) {
  const pid_t child = ::fork();
  if (child == 0) {
    RunAppender runs(path_);
    runs.append(record(1));
    ::signal(SIGXFSZ, SIG_IGN);
    const auto limit = static_cast<rlim_t>(fs::file_size(path_) + 10);
    const rlimit limits = {limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    try {
      runs.append(record(2));
    } catch (const base::RunError&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(content(), header() + row(1));
}

}  // namespace
}  // namespace layline::runs
