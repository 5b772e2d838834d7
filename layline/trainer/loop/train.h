// A training run from its RUN.json to its last step, on one rank of it.
//
//   class Console : public Observer { … };
//   train(config, launch, console);   // on every rank, each with its own Launch
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "layline/trainer/config/run_config.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::trainer::loop {

using metrics::StepRecord;

// Which rank this is, and where rank 0 can be reached.
struct Launch {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;    // among the ranks of this machine
  bool shares_cores = true;  // with the machine's other ranks; false: the number of threads was set already
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
};

// Hears what a run has to say, and says when it is to stop. Called from the thread that called train().
class Observer {
 public:
  virtual ~Observer() = default;

  // Once before the first step: what is trained, how and on what. A few lines, each with its end.
  virtual void on_banner(const std::string& text) = 0;
  // On every rank, before its clock starts for a step.
  virtual void before_step() {}
  // After each step, on rank 0 only.
  virtual void on_step(const StepRecord& record) = 0;
  // One line, without its end, that the user should see now.
  virtual void on_message(const std::string& line) = 0;
  // On rank 0, when all steps are done and saved.
  virtual void on_end() {}
  // Asked on every rank after each step. When one rank says so, all stop together after the same step, and train()
  // returns as it does after the last one.
  virtual bool wants_stop() { return false; }
  // Another rank has failed, and has said why. Called on a thread of its own: train() ends soon after if this rank is
  // able to, but it may be stuck.
  virtual void on_failure_elsewhere() {}
};

// The run has failed and another rank tells the user why: end without a word.
class FailedElsewhere : public std::exception {
 public:
  explicit FailedElsewhere(bool is_input_error) : is_input_error_(is_input_error) {}
  const char* what() const noexcept override { return "the run failed on another rank"; }
  bool is_input_error() const { return is_input_error_; }  // the user can mend it

 private:
  bool is_input_error_;
};

// Instead of train() on a rank that cannot start, as its files are not what they should be: lets the other ranks know,
// which end then too. Throws base::InputError with the mistake on the first of the ranks that have made it ("rank 2: …"
// where not all cannot start), FailedElsewhere on the others.
[[noreturn]] void give_up(const std::string& mistake, const Launch& launch);

// Throws FailedElsewhere, or else base::InputError for what the user can mend, base::RunError and comm::CommError for a
// run that failed.
void train(const config::RunConfig& config, const Launch& launch, Observer& observer);

}  // namespace layline::trainer::loop
