// A training run from its RUN.json to its last step, on one rank of it.
//
//   class Console : public Observer { … };
//   train(config, launch, console);   // on every rank, each with its own Launch
#pragma once

#include <cstdint>
#include <string>

#include "layline/trainer/config/run_config.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::trainer::loop {

using metrics::StepRecord;

// Which rank this is, and where rank 0 can be reached.
struct Launch {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;  // among the ranks of this machine
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
};

// Hears what a run has to say, and says when it is to stop. Called from the thread that called train().
class Observer {
 public:
  virtual ~Observer() = default;

  // Once before the first step: what is trained, how and on what. A few lines, each with its end.
  virtual void on_banner(const std::string& text) = 0;
  // After each step, on rank 0 only.
  virtual void on_step(const StepRecord& record) = 0;
  // One line, without its end, that the user should see now.
  virtual void on_message(const std::string& line) = 0;
  // Asked on every rank after each step. When one rank says so, all stop together after the same step, and train()
  // returns as it does after the last one.
  virtual bool wants_stop() { return false; }
};

// Throws base::InputError for what the user can mend, base::RunError and comm::CommError for a run that failed.
void train(const config::RunConfig& config, const Launch& launch, Observer& observer);

}  // namespace layline::trainer::loop
