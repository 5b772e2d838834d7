#include "apps/layline_train/paced_observer.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "apps/layline/command.h"

namespace layline::app {

void PacedObserver::before_step() {
  RankObserver::before_step();
  std::string line;
  if (!std::getline(std::cin, line)) throw Exit{0};
}

void PacedObserver::on_step(const trainer::loop::StepRecord& record) {
  fmt::print("{{\"step\": {}, \"loss\": {:.9g}, \"step_seconds\": {:.9g}}}\n", record.step, record.loss,
             record.step_seconds);
  std::fflush(stdout);
}

}  // namespace layline::app
