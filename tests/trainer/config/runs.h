// RUN.json texts that tests change a little, and what an error says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "layline/base/error.h"
#include "layline/spec/registry.h"
#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config::test {

inline constexpr const char* kSmallest = R"({"model": "llama-tiny", "sequence_length": 512, "global_batch": 32,
  "steps": 200, "data": {"train": "corpus"}})";

// Every key, none at its default.
inline constexpr const char* kFullest = R"({
  "model": "llama-3.2-1b", "load": "weights", "layout": "dp2 tp2 mb4 sp", "cluster": "h200-141gb",
  "sequence_length": 1024, "global_batch": 64, "steps": 100, "precision": "fp64", "device": "cuda", "seed": 7,
  "data": {"train": [{"path": "a"}, {"path": "b", "weight": 0.25}], "valid": "held-out", "tokenizer": "bytes",
           "order": "sequential", "valid_every_steps": 5},
  "optimizer": {"learning_rate": 1e-3, "warmup_steps": 20, "decay": "cosine", "min_learning_rate": 1e-4,
                "betas": [0.8, 0.99], "epsilon": 1e-6, "weight_decay": 0, "clip": 0},
  "checkpoint": {"directory": "saved", "every_steps": 10, "keep": 3, "resume": "previous", "on_error": "continue"},
  "metrics": "metrics.jsonl", "memory_limit_bytes": 2000000000, "timeout_seconds": 60.5, "stop_after_seconds": 3600})";

inline RunConfig parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "run.json", overrides);
}

// The text with the only `from` made `to`.
inline std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    ADD_FAILURE() << '"' << from << "\" is not there once";
    return text;
  }
  return text.replace(at, from.size(), to);
}

// What the InputError of `run` says; "" and a failed test when there is none.
template <typename Run>
std::string error_of(const Run& run) {
  try {
    run();
  } catch (const base::InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace layline::trainer::config::test
