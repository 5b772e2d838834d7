// A small run in a folder of its own, for tests that start it as users and launchers do.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace layline::test {

class TrainPrograms : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    std::string text;
    for (int i = 0; i < 500; ++i) text += "In the beginning God created the heaven and the earth. ";
    write_text(path("corpus"), text);
    write_text(path("run.json"), R"({"model": {"model_type": "llama", "hidden_size": 16, "intermediate_size": 32,
      "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 256}, "sequence_length": 16, "global_batch": 4,
      "steps": 3, "precision": "fp32", "layout": "mb1", "data": {"train": "corpus"}, "metrics": "metrics.jsonl"})");
  }

  std::vector<nlohmann::json> rows() const {
    std::istringstream lines(read_text(path("metrics.jsonl")));
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  }

  // A shell line; `{rank}` stands for layline-train.
  Result run(std::string line) const {
    const std::string word = "{rank}";
    for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at)) {
      line.replace(at, word.size(), program() + "-train");
    }
    return shell(line);
  }

  // Waits, in a shell line, until `file` has a line of a step.
  static std::string until_a_step_is_in(const std::string& file) {
    return "for i in $(seq 2000); do grep -sq '^step' " + file + " && break; sleep 0.01; done; ";
  }
};

}  // namespace layline::test
