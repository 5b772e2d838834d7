// Runs that are killed again and again, each time resumed under another layout: nothing of what was trained is lost.
//
// LAYLINE_KILLS says how many times; `make soak` has 200, of runs of 60 steps. Without it a few, of shorter runs.
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/checkpoint/reader.h"
#include "tests/trainer/programs/train_programs.h"

namespace layline::test {
namespace {

namespace checkpoint = trainer::checkpoint;

constexpr double kTolerance = 1e-10;
constexpr int kManySteps = 60, kFewSteps = 20;
constexpr int kFewKills = 3;
// Of 4 heads, 4 layers and 30 sequences a step.
constexpr std::array kLayouts = {"dp1 tp1 pp1 mb1",       "dp2 tp1 pp1 mb1",           "dp3 tp1 pp1 mb1",
                                 "dp5 tp1 pp1 mb1",       "dp1 tp2 pp1 mb1",           "dp1 tp4 pp1 mb1 sp",
                                 "dp1 tp1 pp2 mb5",       "dp1 tp1 pp4 mb1",           "dp2 tp2 pp1 mb1",
                                 "dp3 tp1 pp1 mb1 zero0", "dp2 tp1 pp2 mb5 zero0",     "dp1 tp2 pp2 mb3",
                                 "dp1 tp1 pp2 mb1 vp2",   "dp2 tp1 pp1 mb15 ckpt=full"};

int ranks_of(const std::string& layout) {
  int ranks = 1;
  for (const char* axis : {"dp", "tp", "pp"}) ranks *= std::atoi(layout.substr(layout.find(axis) + 2).c_str());
  return ranks;
}

class Kills : public TrainPrograms {
 protected:
  void SetUp() override {
    TrainPrograms::SetUp();
    write_text(path("run.json"), R"({"model": {"model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4, "vocab_size": 256},
      "sequence_length": 16, "global_batch": 30, "steps": 60, "precision": "fp64", "data": {"train": "corpus"},
      "optimizer": {"learning_rate": 1e-2, "warmup_steps": 10},
      "checkpoint": {"directory": "saved", "every_steps": 3, "resume": true}, "metrics": "metrics.jsonl"})");
  }

  std::string command(const std::string& layout, const std::string& flags = "") const {
    return "{} train run.json --nproc " + std::to_string(ranks_of(layout)) + " --set 'layout=" + layout +
           "' --set steps=" + std::to_string(num_steps_) + " " + flags;
  }

  Result run_and_kill(const std::string& layout, const std::string& kill) const {
    return shell(command(layout) + " > out.txt & pid=$!; " + kill + "wait $pid");
  }

  // The last row of each step.
  std::map<int, nlohmann::json> steps_of(const std::string& file) const {
    std::map<int, nlohmann::json> steps;
    std::istringstream lines(read_text(path(file)));
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json row = nlohmann::json::parse(line);
      steps[row["step"].get<int>()] = row;
    }
    return steps;
  }

  static void expect_near(double found, double wanted, const std::string& what) {
    EXPECT_LE(std::abs(found - wanted), kTolerance * std::abs(wanted)) << what;
  }

  void expect_same_steps() const {
    const auto wanted = steps_of("alone.jsonl"), found = steps_of("metrics.jsonl");
    ASSERT_EQ(wanted.size(), static_cast<size_t>(num_steps_));
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [step, row] : wanted) {
      for (const char* key : {"loss", "grad_norm", "learning_rate", "tokens"}) {
        expect_near(found.at(step)[key], row[key], std::string(key) + " of step " + std::to_string(step));
      }
    }
  }

  static std::vector<double> values_of(const checkpoint::CheckpointReader& reader, checkpoint::Kind kind,
                                       const checkpoint::SavedParameter& parameter) {
    const checkpoint::Box box = checkpoint::whole(parameter.shape);
    std::vector<double> values(static_cast<size_t>(box.size()));
    reader.read(kind, parameter.name, box, std::as_writable_bytes(std::span(values)));
    return values;
  }

  void expect_same_state() const {
    const checkpoint::CheckpointReader wanted(checkpoint::step_folder(path("alone"), num_steps_));
    const checkpoint::CheckpointReader found(checkpoint::step_folder(path("saved"), num_steps_));
    ASSERT_EQ(found.manifest().parameters, wanted.manifest().parameters);
    for (const checkpoint::SavedParameter& parameter : wanted.manifest().parameters) {
      for (const auto kind : {checkpoint::Kind::kWeight, checkpoint::Kind::kExpAvg, checkpoint::Kind::kExpAvgSq}) {
        const std::vector<double> a = values_of(wanted, kind, parameter), b = values_of(found, kind, parameter);
        double largest = 0, difference = 0;
        for (size_t i = 0; i < a.size(); ++i) {
          largest = std::max(largest, std::abs(a[i]));
          difference = std::max(difference, std::abs(a[i] - b[i]));
        }
        EXPECT_LE(difference, kTolerance * largest) << parameter.name;
      }
    }
  }

  int num_unfinished() const {
    int count = 0;
    std::error_code ignored;
    for (const auto& step : std::filesystem::directory_iterator(path("saved"), ignored)) {
      count += step.is_directory() && !std::filesystem::exists(step.path() / checkpoint::kManifestName) ? 1 : 0;
    }
    return count;
  }

  void wait_until_nobody_is_left() const {
    for (int i = 0; i < 2000 && num_processes() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_EQ(num_processes(), 0);
  }

  int num_steps_ = kFewSteps;
};

TEST_F(Kills, LoseNothing) {
  const char* asked = std::getenv("LAYLINE_KILLS");
  const int num_kills = asked != nullptr ? std::atoi(asked) : kFewKills;
  num_steps_ = asked != nullptr ? kManySteps : kFewSteps;
  const int most_milliseconds = asked != nullptr ? 2500 : 900;
  std::mt19937 random(20231109);
  const auto draw = [&random](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };

  const Result alone = shell(command(kLayouts[0], "--set checkpoint.directory=alone --set metrics=alone.jsonl"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  int kills = 0, in_saves = 0;
  while (kills < num_kills) {
    std::filesystem::remove_all(path("saved"));
    std::filesystem::remove(path("metrics.jsonl"));
    for (bool is_done = false; !is_done;) {
      const std::string layout = kLayouts[static_cast<size_t>(draw(kLayouts.size()))];
      const std::string seconds = std::to_string(0.3 + 0.001 * draw(most_milliseconds));
      const std::string victims =
          draw(2) == 0 ? "$pid $(pgrep -P $pid)" : "$(pgrep -P $pid | shuf -n 1 --random-source=run.json)";
      // The last run of a series is left alone once there have been enough.
      std::string kill;
      if (kills < num_kills)
        kill.append("sleep ").append(seconds).append("; kill -9 ").append(victims).append(" 2> kill.txt; ");
      const Result result = run_and_kill(layout, kill);
      wait_until_nobody_is_left();
      is_done = result.code == 0;
      if (is_done) break;
      ASSERT_TRUE(result.code == 1 || result.code == 137) << layout << ": " << result.code << "\n" << result.err;
      ++kills;
      in_saves += num_unfinished();
    }
    expect_same_steps();
    expect_same_state();
    if (HasFailure()) return;
  }
  std::cout << kills << " kills, " << in_saves << " of them during a save\n";
}

}  // namespace
}  // namespace layline::test
