// Runs the built `layline` as a user does, through a shell.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace layline::test {

struct Result {
  int code = -1;  // exit code; 128 + signal when a signal ended the shell
  std::string out;
  std::string err;
};

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

// A folder of its own for each test.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("layline_apps_" + std::string(info.name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string program() { return std::string(LAYLINE_BINARY_DIR) + "/layline"; }
  static std::string source(const std::string& name) { return std::string(LAYLINE_SOURCE_DIR) + "/" + name; }

  // `{}` in the line stands for the program.
  Result shell(std::string line) const {
    for (size_t at = line.find("{}"); at != std::string::npos; at = line.find("{}", at)) line.replace(at, 2, program());
    const std::string errors = path("stderr.txt");
    FILE* pipe = popen(("cd " + folder_.string() + " && { " + line + "; } 2>" + errors).c_str(), "r");
    Result result;
    std::array<char, 4096> buffer;
    while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) result.out.append(buffer.data(), n);
    const int status = pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.err = read_text(errors);
    return result;
  }
  // How many run in the test's folder.
  int num_processes() const {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      count += std::filesystem::read_symlink(entry.path() / "cwd", ignored).string() + "/" == path("") ? 1 : 0;
    }
    return count;
  }
  Result layline(const std::string& arguments) const { return shell("{} " + arguments); }

 private:
  std::filesystem::path folder_;
};

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The error is one line on stderr, nothing is on stdout, and the code says that the user can mend it.
inline void expect_error(const Result& result, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err.rfind("error: ", 0), 0u) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& part : parts)
    EXPECT_TRUE(has(result.err, part)) << "want \"" << part << "\" in: " << result.err;
}

inline const std::string kPaperJob =
    "--model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 --engine aleph-scaling";

}  // namespace layline::test
