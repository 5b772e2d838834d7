#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;

class Commands : public Program {};
class Specs : public Program {};
class Validate : public Program {
 protected:
  std::string runs() const { return source("data/published/hagemann2024_a100.csv"); }
};

size_t count_lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST_F(Commands, HelpHasAnExample) {
  for (const char* command : {"plan", "explain", "validate", "calibrate", "specs", "train"}) {
    const Result result = layline(std::string(command) + " --help");
    EXPECT_EQ(result.code, 0) << command;
    EXPECT_EQ(result.err, "") << command;
    EXPECT_TRUE(has(result.out, std::string("layline ") + command) || has(result.out, "layline specs")) << result.out;
  }
  const Result result = layline("--help");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(has(result.out, "layline plan --model")) << result.out;
  for (const char* command : {"plan", "explain", "validate", "calibrate", "specs", "train"}) {
    EXPECT_TRUE(has(result.out, command)) << command;
  }
}

// The example of each command's help, run as it stands, from the repository's root.
TEST_F(Commands, ExamplesOfTheHelpWork) {
  for (const char* command : {"plan", "explain"}) {
    const std::string help = layline(std::string(command) + " --help").out;
    const size_t start = help.find("Example: layline ");
    ASSERT_NE(start, std::string::npos) << help;
    std::string example = help.substr(start + 17);
    std::replace(example.begin(), example.end(), '\n', ' ');
    const Result result = layline(example);
    EXPECT_EQ(result.code, 0) << example << result.err;
  }
}

TEST_F(Commands, SayTheirVersion) {
  const Result result = layline("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out.rfind("layline 0", 0), 0u) << result.out;
}

TEST_F(Specs, ListNamesEveryShippedSpec) {
  const Result text = layline("specs list");
  EXPECT_EQ(text.code, 0);
  const json list = json::parse(layline("specs list --json").out);
  EXPECT_EQ(list["schema_version"], 1);
  EXPECT_GT(list["specs"].size(), 50u);
  for (const json& spec : list["specs"]) EXPECT_TRUE(has(text.out, spec["name"].get<std::string>()));
}

TEST_F(Specs, EveryShippedSpecIsShownAndIsGood) {
  const json list = json::parse(layline("specs list --json").out);
  for (const json& spec : list["specs"]) {
    const std::string name = spec["name"];
    const Result shown = shell("{} specs show " + name + " --kind " + spec["kind"].get<std::string>() +
                               " > spec.json && {} specs check spec.json");
    EXPECT_EQ(shown.code, 0) << name << ": " << shown.err;
    EXPECT_TRUE(has(shown.out, "good")) << name << ": " << shown.out;
  }
}

TEST_F(Specs, AChangedSpecCanBePlannedWith) {
  const Result result = shell(
      "{} specs show llama-13b --kind model | sed -e 's/\"num_layers\": 40/\"num_layers\": 36/' > m.json && {} plan "
      "--json "
      "--model ./m.json "
      "--cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 --engine aleph-scaling");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_LT(json::parse(result.out)["job"]["num_parameters"].get<double>(), 13.5e9);
}

TEST_F(Validate, WritesJsonWithTheAgreedKeys) {
  const Result result = layline("validate --json " + runs());
  ASSERT_EQ(result.code, 0) << result.err;
  const json out = json::parse(result.out);
  EXPECT_EQ(out["schema_version"], 1);
  ASSERT_FALSE(out["sweeps"].empty());
  const std::vector<std::string> wanted = {"num_runs",
                                           "num_timed",
                                           "num_unscored",
                                           "mean_abs_relative_error",
                                           "median_abs_relative_error",
                                           "bias",
                                           "error_bar_coverage",
                                           "spearman",
                                           "top1_regret",
                                           "first_pick_oom",
                                           "oom_accuracy",
                                           "false_fits",
                                           "false_alarms",
                                           "brier",
                                           "memory_median_abs_relative_error"};
  for (const std::string& key : wanted) {
    EXPECT_TRUE(out["overall"].contains(key)) << key;
    for (const auto& [name, scores] : out["sweeps"].items()) EXPECT_TRUE(scores.contains(key)) << name << " " << key;
  }
}

TEST_F(Validate, WritesPredictionsBesideTheRuns) {
  const Result result = layline("validate " + runs() + " --predictions out.csv");
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string before = read_text(runs()), after = read_text(path("out.csv"));
  EXPECT_EQ(count_lines(after), count_lines(before));
  EXPECT_TRUE(has(after.substr(0, after.find('\n')),
                  ",predicted_step_seconds,predicted_memory_first_stage_bytes,predicted_memory_last_stage_bytes,"
                  "predicted_memory_max_bytes,predicted_verdict,fit_probability,verdict_margin_bytes,reason"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("")), std::filesystem::directory_iterator()), 2);
}

TEST_F(Validate, DiesCleanlyOnCtrlC) {
  write_text(path("out.csv"), "old\n");
  const Result result =
      shell("timeout --preserve-status -s INT 0.5 {} validate " + runs() + " --leave-out sweep --predictions out.csv");
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(read_text(path("out.csv")), "old\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("")), std::filesystem::directory_iterator()), 2);
}

}  // namespace
}  // namespace layline::test
