// For benchmarks that let programs take turns: a step when a line comes on standard input, and its time as a line of
// JSON on standard output.
#pragma once

#include "apps/layline_train/observers.h"

namespace layline::app {

class PacedObserver : public RankObserver {
 public:
  void on_banner(const std::string&) override {}
  void before_step() override;  // throws Exit when standard input ends
  void on_step(const trainer::loop::StepRecord& record) override;
  void on_message(const std::string&) override {}
};

}  // namespace layline::app
