#include "apps/layline/sweep_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/layline/terminal.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/calibrate/score.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;
using runs::RunStatus;
using sweep::SweepState;
using sweep::SweptRun;

constexpr size_t kTop = 10;

std::string ranks_text(int64_t num_ranks) { return fmt::format("{} rank{}", num_ranks, num_ranks == 1 ? "" : "s"); }

bool is_predicted_to_fit(const SweptRun& run) { return run.planned.prediction.verdict == calibrate::Verdict::kFits; }

// How the verdicts of runs that ended ok or out of memory came out.
struct Verdicts {
  int64_t foreseen = 0, surprises = 0, alarms = 0;
};

Verdicts verdicts_of(const SweepState& state) {
  Verdicts verdicts;
  for (const SweptRun& run : state.done) {
    if (run.status == RunStatus::kOom) ++(is_predicted_to_fit(run) ? verdicts.surprises : verdicts.foreseen);
    if (run.status == RunStatus::kOk && !is_predicted_to_fit(run)) ++verdicts.alarms;
  }
  return verdicts;
}

std::string verdict_text(const SweepState& state) {
  const Verdicts verdicts = verdicts_of(state);
  return fmt::format("{} out of memory as predicted, {} not; {} ran against the prediction", verdicts.foreseen,
                     verdicts.surprises, verdicts.alarms);
}

std::map<RunStatus, int64_t> counts_of(const SweepState& state) {
  std::map<RunStatus, int64_t> counts;
  for (const SweptRun& run : state.done) ++counts[run.status];
  return counts;
}

std::vector<const SweptRun*> fastest(const SweepState& state) {
  std::vector<const SweptRun*> runs;
  for (const SweptRun& run : state.done) {
    if (run.tokens_per_second) runs.push_back(&run);
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const auto* a, const auto* b) { return *a->tokens_per_second > *b->tokens_per_second; });
  return runs;
}

std::string best_table(const std::vector<const SweptRun*>& runs) {
  base::TextTable table({{.title = "", .align = base::Align::kRight},
                         {.title = "layout", .can_shorten = true},
                         {.title = "ranks", .align = base::Align::kRight},
                         {.title = "step s", .align = base::Align::kRight},
                         {.title = "predicted", .align = base::Align::kRight},
                         {.title = "tok/s", .align = base::Align::kRight}});
  for (size_t i = 0; i < std::min(runs.size(), kTop); ++i) {
    const SweptRun& run = *runs[i];
    table.add_row({fmt::format("{}", i + 1), run.planned.text, fmt::format("{}", run.planned.num_ranks),
                   fmt::format("{:.4g}", *run.step_seconds), fmt::format("{:.4g}", run.planned.prediction.step_seconds),
                   base::format_number(*run.tokens_per_second)});
  }
  return table.render(text_style());
}

// How often measured over predicted was in each tenth of its range.
std::string ratio_text(const std::vector<const SweptRun*>& runs) {
  constexpr size_t kBins = 10;
  std::vector<double> ratios;
  for (const SweptRun* run : runs) ratios.push_back(*run->step_seconds / run->planned.prediction.step_seconds);
  if (ratios.empty()) return "";
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::vector<double> bins(kBins, 0);
  for (const double ratio : ratios) {
    const double place = *most > *least ? (ratio - *least) / (*most - *least) : 0;
    ++bins[std::min(kBins - 1, static_cast<size_t>(place * kBins))];
  }
  return fmt::format("measured/predicted  {:.2f} {} {:.2f}  median {:.2f}\n", *least,
                     base::sparkline(bins, text_style()), *most, calibrate::median(ratios));
}

ordered_json to_json(const SweptRun& run) {
  const auto value_or_null = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  return {{"layout", run.planned.text},
          {"ranks", run.planned.num_ranks},
          {"status", runs::name_of(run.status)},
          {"reason", run.reason},
          {"step_seconds", value_or_null(run.step_seconds)},
          {"tokens_per_second", value_or_null(run.tokens_per_second)},
          {"predicted_step_seconds", run.planned.prediction.step_seconds},
          {"predicted_verdict", calibrate::name_of(run.planned.prediction.verdict)},
          {"fit_probability", run.planned.prediction.fit_probability},
          {"is_from_before", run.is_from_before}};
}

}  // namespace

std::string sweep_head(const SweepState& state) {
  std::string text = fmt::format("{} runs", base::format_count(state.num_planned));
  if (!state.done.empty())
    text += fmt::format(", {} done before", base::format_count(static_cast<int64_t>(state.done.size())));
  if (state.num_illegal > 0)
    text += fmt::format("; {} that were asked for are not legal", base::format_count(state.num_illegal));
  return text + "\n";
}

std::string run_line(const SweepState& state) {
  const SweptRun& run = state.done.back();
  std::string line =
      fmt::format("{:>5}  {:<36}  {:<8}", state.done.size(), run.planned.text, ranks_text(run.planned.num_ranks));
  if (run.step_seconds) {
    line +=
        fmt::format("  {:.4g} s (predicted {:.4g})  {} tok/s{}", *run.step_seconds, run.planned.prediction.step_seconds,
                    base::format_number(*run.tokens_per_second), state.best == state.done.size() - 1 ? "  best" : "");
  } else {
    line += fmt::format("  {}: {}", runs::name_of(run.status), run.reason);
  }
  return line + "\n";
}

std::string sweep_remark(const SweepState& state, const sweep::PlannedRun& next) {
  if (!state.best) return next.text;
  const SweptRun& best = state.done[*state.best];
  const double predicted = best.planned.job->tokens_per_step() / best.planned.prediction.step_seconds;
  const Verdicts verdicts = verdicts_of(state);
  return fmt::format("best {}: {} tok/s (predicted {}) · {} OOM as predicted, {} not · now {}", best.planned.text,
                     base::format_number(*best.tokens_per_second), base::format_number(predicted), verdicts.foreseen,
                     verdicts.surprises, next.text);
}

std::string sweep_summary(const SweepState& state, const std::string& output) {
  const std::vector<const SweptRun*> ran = fastest(state);
  std::vector<std::string> counts;
  for (const auto& [status, count] : counts_of(state))
    counts.push_back(fmt::format("{} {}", count, runs::name_of(status)));
  std::string text = fmt::format("\n{} of {} runs: {}; {}\n", state.done.size(), state.num_planned,
                                 fmt::join(counts, ", "), verdict_text(state));
  text += ratio_text(ran);
  if (!ran.empty()) text += "\n" + best_table(ran);
  return text + fmt::format("\nNext:  layline validate {}\n", output);
}

std::string sweep_json(const SweepState& state) {
  ordered_json json;
  json["schema_version"] = 1;
  json["num_planned"] = state.num_planned;
  json["num_illegal"] = state.num_illegal;
  json["num_done"] = state.done.size();
  json["is_interrupted"] = state.interrupt_signal != 0;
  json["best"] = state.best ? to_json(state.done[*state.best]) : ordered_json();
  json["runs"] = ordered_json::array();
  for (const SweptRun& run : state.done) json["runs"].push_back(to_json(run));
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::app
