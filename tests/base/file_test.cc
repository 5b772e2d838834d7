#include "layline/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "layline/base/error.h"

namespace layline::base {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() {
    std::string pattern = (fs::temp_directory_path() / "layline-base-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/file";
  }
  ~Files() override { fs::remove_all(folder_); }

  std::ptrdiff_t num_files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  std::string folder_, path_;
};

TEST_F(Files, AreReadAsTheyWereWritten) {
  const std::string content("a\0b\r\n", 5);
  write_file_atomically(path_, content);
  EXPECT_EQ(read_file(path_), content);
  write_file_atomically(path_, "");
  EXPECT_EQ(read_file(path_), "");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(Files, BeyondTheLimitAreRefused) {
  write_file_atomically(path_, "12345");
  EXPECT_EQ(read_file(path_, 5), "12345");
  EXPECT_THROW(read_file(path_, 4), InputError);
  EXPECT_THROW(read_file("/dev/zero", 1000), InputError);
}

TEST_F(Files, ThatAreMissingOrFoldersAreRefused) {
  EXPECT_THROW(read_file(path_), InputError);
  EXPECT_THROW(read_file(folder_), InputError);
  EXPECT_THROW(write_file_atomically(folder_, "x"), InputError);
  EXPECT_THROW(write_file_atomically(folder_ + "/missing/file", "x"), InputError);
  EXPECT_THROW(write_file_atomically("", "x"), InputError);
}

TEST_F(Files, KeepTheirModeWhenReplaced) {
  write_file_atomically(path_, "old");
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  write_file_atomically(path_, "new");
  struct stat info = {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(Files, AreWrittenThroughSymbolicLinks) {
  write_file_atomically(path_, "old");
  fs::create_symlink("file", folder_ + "/link");
  write_file_atomically(folder_ + "/link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_EQ(read_file(path_), "new");
}

TEST_F(Files, StayAsTheyWereWhenTheDiskIsFull) {
  write_file_atomically(path_, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limits = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limits);
    try {
      write_file_atomically(path_, std::string(1000, 'x'));
    } catch (const RunError&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(num_files(), 1);
}

}  // namespace
}  // namespace layline::base
