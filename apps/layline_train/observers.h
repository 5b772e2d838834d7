// What a rank shows of its run.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "apps/layline_train/run_summary.h"
#include "layline/base/text_table.h"
#include "layline/trainer/loop/train.h"
#include "layline/trainer/metrics/metrics_writer.h"

namespace layline::app {

// What all ranks do alike.
class RankObserver : public trainer::loop::Observer {
 public:
  void before_step() override;  // from the first one on signals are noted
  bool wants_stop() override;
  // Ends the process when train() has not ended by itself a few seconds later.
  void on_failure_elsewhere() override;

 private:
  bool notes_signals_ = false;
};

// Rank 0: the banner and a line a step on standard output, at most ten a second on a terminal, a summary, and the
// metrics file. When nobody reads the output any more, the run goes on without it.
class MainObserver : public RankObserver {
 public:
  MainObserver(std::string metrics, const std::string& checkpoints);  // file and folder, or ""
  // Opens the metrics file: only now do all ranks hear of it when it cannot be written (base::InputError), and it is
  // not touched by a run that does not start.
  void on_banner(const std::string& text) override;
  void on_step(const trainer::loop::StepRecord& record) override;
  void on_message(const std::string& line) override;
  void on_end() override;

 private:
  using Clock = std::chrono::steady_clock;

  void print(const std::string& text);
  bool is_time_for_a_line();

  std::string metrics_path_;
  std::optional<trainer::metrics::MetricsWriter> metrics_;
  RunSummary summary_;
  base::TextStyle style_;
  bool is_terminal_;
  bool is_read_ = true;
  Clock::time_point next_line_ = Clock::time_point::min();
};

// All other ranks: messages on standard error, with the rank.
class QuietObserver : public RankObserver {
 public:
  explicit QuietObserver(int64_t rank) : rank_(rank) {}
  void on_banner(const std::string&) override {}
  void on_step(const trainer::loop::StepRecord&) override {}
  void on_message(const std::string& line) override;

 private:
  int64_t rank_;
};

std::unique_ptr<trainer::loop::Observer> make_observer(const trainer::config::RunConfig& config,
                                                       const trainer::loop::Launch& launch);

}  // namespace layline::app
