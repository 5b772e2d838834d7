#include "layline/sweep/measure.h"

#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/calibrate/score.h"
#include "layline/trainer/metrics/read_metrics.h"

namespace layline::sweep {
namespace {

using trainer::config::RunConfig;
using trainer::metrics::StepRecord;

constexpr size_t kMaxReason = 300;  // bytes

// The first line that says what went wrong; of memory rather than of what came of its lack on other ranks.
std::string error_line(const std::string& errors) {
  std::string first;
  for (size_t start = 0; start < errors.size();) {
    const size_t end = std::min(errors.find('\n', start), errors.size());
    const std::string line = errors.substr(start, end - start);
    start = end + 1;
    if (!line.starts_with("error: ")) continue;
    if (line.find("out of memory") != std::string::npos) return line.substr(7);
    if (first.empty()) first = line.substr(7);
  }
  return first;
}

// As a part of a record's notes: one line, without what parts them.
std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == ';' || c == '\n' || c == '\r'; }, ',');
  return text.substr(0, kMaxReason);
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("signal {} (SIG{})", signal, name);
}

// What the steps from `first` on went to: of each stage the median of each name.
std::vector<std::map<std::string, double>> median_seconds(const std::vector<StepRecord>& steps, size_t first) {
  std::vector<std::map<std::string, double>> medians = steps.back().seconds_by_stage;
  for (size_t stage = 0; stage < medians.size(); ++stage) {
    for (auto& [name, median] : medians[stage]) {
      std::vector<double> seconds;
      for (size_t i = first; i < steps.size(); ++i) {
        if (stage >= steps[i].seconds_by_stage.size()) continue;
        const auto found = steps[i].seconds_by_stage[stage].find(name);
        if (found != steps[i].seconds_by_stage[stage].end()) seconds.push_back(found->second);
      }
      median = calibrate::median(seconds);
    }
  }
  return medians;
}

void read_steps(const std::vector<StepRecord>& steps, const RunConfig& run, Measurement& measured) {
  measured.num_steps = static_cast<int64_t>(steps.size());
  for (const StepRecord& step : steps) {
    if (step.peak_memory_bytes < measured.peak_memory_bytes) continue;
    measured.peak_memory_bytes = step.peak_memory_bytes;
    measured.peak_memory_bytes_by_stage = step.peak_memory_bytes_by_stage;
  }
  std::vector<double> seconds, mfu;
  const size_t first = steps.size() > 2 ? 1 : 0;
  for (size_t i = first; i < steps.size(); ++i) {
    if (steps[i].step_seconds > 0) seconds.push_back(steps[i].step_seconds);
    if (steps[i].mfu) mfu.push_back(*steps[i].mfu);
  }
  if (seconds.empty()) return;
  measured.seconds_by_stage = median_seconds(steps, first);
  measured.fastest_step_seconds = *std::min_element(seconds.begin(), seconds.end());
  measured.step_seconds = calibrate::median(seconds);
  measured.spread = (calibrate::quantile(seconds, 0.75) - calibrate::quantile(seconds, 0.25)) / *measured.step_seconds;
  measured.tokens_per_second = run.tokens_per_step() / *measured.step_seconds;
  if (!mfu.empty()) measured.mfu = calibrate::median(mfu);
}

void judge_exit(const LaunchResult& result, const RunConfig& run, Measurement& measured) {
  measured.reason = error_line(result.errors);
  if (result.code == 0 && measured.num_steps >= run.steps && measured.step_seconds) {
    measured.status = runs::RunStatus::kOk;
    measured.reason.clear();
  } else if (measured.reason.find("out of memory") != std::string::npos) {
    measured.status = runs::RunStatus::kOom;
  } else if (result.code == 0) {
    measured.reason = fmt::format("ended with {} of {} steps in its metrics", measured.num_steps, run.steps);
  } else if (measured.reason.empty()) {
    measured.reason = fmt::format("exit code {}, and did not say why", result.code);
  }
}

void judge(const LaunchResult& result, const RunConfig& run, const MeasureOptions& options, Measurement& measured) {
  const std::string progress = fmt::format("{} of {} steps", measured.num_steps, run.steps);
  switch (result.end) {
    case LaunchEnd::kExited:
      judge_exit(result, run, measured);
      break;
    case LaunchEnd::kKilled:
      measured.reason = fmt::format("killed by {}", signal_name(result.code));
      break;
    case LaunchEnd::kTimeLimit:
      measured.status = runs::RunStatus::kTimeout;
      measured.reason =
          fmt::format("not done after {}: {}", base::format_seconds(options.time_limit_seconds), progress);
      break;
    case LaunchEnd::kStopped:
      measured.status = runs::RunStatus::kTimeout;
      measured.is_given_up = true;
      measured.reason = fmt::format("given up after {}: slower than {} a step", progress,
                                    base::format_seconds(options.hopeless_step_seconds.value_or(0)));
      break;
    case LaunchEnd::kInterrupted:
      measured.interrupt_signal = result.code;
      break;
  }
  measured.reason = one_line(measured.reason);
}

// What programs, threads and libraries need beside tensors is far less.
std::optional<int64_t> memory_net(const RunConfig& run) {
  constexpr int64_t kBesideTensors = int64_t{2} << 30;
  if (!run.memory_limit_bytes || run.device != trainer::config::Device::kCpu) return std::nullopt;
  return *run.memory_limit_bytes + kBesideTensors;
}

bool is_hopeless(const std::string& metrics, double hopeless_step_seconds) {
  const std::vector<StepRecord> steps = trainer::metrics::read_metrics(metrics);
  if (steps.size() < 2) return false;  // the first is slower than the others
  return std::all_of(steps.begin(), steps.end(),
                     [&](const StepRecord& step) { return step.step_seconds > hopeless_step_seconds; });
}

}  // namespace

Measurement measure(RunConfig run, int64_t num_ranks, Launcher& launcher, const MeasureOptions& options) {
  const std::filesystem::path folder = options.scratch_folder;
  const std::string file = (folder / "run.json").string();
  run.metrics = (folder / "metrics.jsonl").string();
  run.timeout_seconds = std::min(run.timeout_seconds, options.time_limit_seconds);
  std::filesystem::remove(run.metrics);
  base::write_file_atomically(file, trainer::config::to_json(run));
  const auto should_stop = [&] {
    return options.hopeless_step_seconds && is_hopeless(run.metrics, *options.hopeless_step_seconds);
  };
  const LaunchRequest request = {file, num_ranks, options.time_limit_seconds, memory_net(run)};
  const LaunchResult result = launcher.launch(request, should_stop);
  Measurement measured;
  measured.wall_seconds = result.wall_seconds;
  read_steps(trainer::metrics::read_metrics(run.metrics), run, measured);
  judge(result, run, options, measured);
  return measured;
}

}  // namespace layline::sweep
