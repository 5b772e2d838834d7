#include "layline/trainer/checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/trainer/formats/files.h"

namespace layline::trainer::checkpoint::test {
namespace {

using formats::test::input_error;
using formats::test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

Manifest empty_manifest(int64_t step) {
  Manifest manifest;
  manifest.step = step;
  manifest.run = "{}";
  return manifest;
}

void make_step(const std::string& directory, int64_t step, bool is_committed = true) {
  fs::create_directories(step_folder(directory, step));
  std::ofstream(step_folder(directory, step) + "/shard") << "data";
  if (is_committed) commit(step_folder(directory, step), empty_manifest(step));
}

TEST(Folder, ListsWhatIsCommittedTheNewestFirst) {
  const TemporaryFolder folder;
  for (const int64_t step : {5, 1000, 20}) make_step(folder.path(), step);
  make_step(folder.path(), 2000, false);
  fs::create_directories(folder.file("step-x"));
  fs::create_directories(folder.file("other"));
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(1000, 20, 5));
  EXPECT_THAT(committed_steps(folder.file("none")), IsEmpty());
  EXPECT_EQ(find_checkpoint(folder.path()), step_folder(folder.path(), 1000));
  EXPECT_EQ(find_checkpoint(step_folder(folder.path(), 20)), step_folder(folder.path(), 20));
}

TEST(Folder, SaysWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  EXPECT_THAT(input_error([&] { find_checkpoint(folder.file("none")); }), HasSubstr("none: there is no such folder"));
  EXPECT_THAT(input_error([&] { find_checkpoint(folder.path()); }), HasSubstr("is no checkpoint and holds none"));
  make_step(folder.path(), 3, false);
  EXPECT_THAT(input_error([&] { find_checkpoint(folder.path()); }), HasSubstr("is no checkpoint and holds none"));
}

TEST(Folder, RemovesOnlyWhatWasNeverFinished) {
  const TemporaryFolder folder;
  make_step(folder.path(), 5);
  make_step(folder.path(), 6, false);
  fs::create_directories(folder.file("mine"));
  remove_unfinished(folder.path());
  EXPECT_TRUE(fs::exists(step_folder(folder.path(), 5) + "/shard"));
  EXPECT_FALSE(fs::exists(step_folder(folder.path(), 6)));
  EXPECT_TRUE(fs::exists(folder.file("mine")));
}

TEST(Folder, PrunesTheOldest) {
  const TemporaryFolder folder;
  for (const int64_t step : {5, 10, 15, 20}) make_step(folder.path(), step);
  prune(folder.path(), 2);
  EXPECT_THAT(committed_steps(folder.path()), ElementsAre(20, 15));
  EXPECT_FALSE(fs::exists(step_folder(folder.path(), 5)));
}

TEST(Folder, SetsAsideWhatComesLater) {
  const TemporaryFolder folder;
  for (int round = 0; round < 2; ++round) {
    for (const int64_t step : {5, 10, 15}) make_step(folder.path(), step);
    const std::string suffix = round == 0 ? ".set-aside" : ".set-aside-2";
    EXPECT_THAT(set_aside_after(folder.path(), 5),
                ElementsAre(step_folder(folder.path(), 15) + suffix, step_folder(folder.path(), 10) + suffix));
    EXPECT_THAT(committed_steps(folder.path()), ElementsAre(5));
  }
}

TEST(FolderLock, IsHeldByOne) {
  const TemporaryFolder folder;
  const std::string directory = folder.file("a/b");
  std::optional<FolderLock> lock(directory);
  EXPECT_THAT(input_error([&] { FolderLock{directory}; }),
              HasSubstr("a/b: another run writes its checkpoints there (process " + std::to_string(getpid()) + " on "));
  lock.reset();
  EXPECT_NO_THROW(FolderLock{directory});
}

TEST(FolderLock, GoesWithItsProcess) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    new FolderLock(folder.path());
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FolderLock{folder.path()});
}

TEST(FolderLock, SaysWhereItCannotBe) {
  const TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT(input_error([&] { FolderLock{folder.file("file/x")}; }), HasSubstr("file/x: cannot be made: Not a dir"));
}

TEST(Commit, FailsWhenItsFolderIsGone) {
  const TemporaryFolder folder;
  EXPECT_THROW(commit(folder.file("none"), empty_manifest(1)), base::RunError);
}

}  // namespace
}  // namespace layline::trainer::checkpoint::test
