// Runs of a sweep as children: each is a `layline train`, which watches its ranks.
#pragma once

#include <string>
#include <vector>

#include "apps/layline/rank_process.h"
#include "apps/layline/supervisor.h"
#include "layline/sweep/launcher.h"

namespace layline::app {

// Until a run that is to end is killed: this long after each of two polite requests.
inline constexpr double kEndingSeconds = 2;

class TrainLauncher : public sweep::Launcher {
 public:
  // trainer: what `layline train` starts instead of layline-train; may be empty. Processes that outlive their parents
  // become children of this one, so that none is left behind.
  TrainLauncher(const SignalQueue& signals, std::string trainer);

  sweep::LaunchResult launch(const sweep::LaunchRequest& request, const std::function<bool()>& should_stop) override;

 private:
  std::vector<std::string> arguments_for(const sweep::LaunchRequest& request) const;
  sweep::LaunchEnd wait_for_end(RankProcess& process, const sweep::LaunchRequest& request,
                                const std::function<bool()>& should_stop, std::string& errors, int& signal) const;
  void end(RankProcess& process, std::string& errors) const;
  bool wait(RankProcess& process, double seconds, std::string& errors) const;

  const SignalQueue& signals_;
  std::string trainer_;
};

// The processor and its cores, such as "Intel(R) Xeon(R) Processor, 2 cores, 8 GiB".
std::string machine_name();

}  // namespace layline::app
