#include "layline/sweep/planned_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "layline/base/error.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"
#include "layline/search/layout_request.h"
#include "layline/search/search.h"
#include "layline/trainer/config/resolve_layout.h"

namespace layline::sweep {
namespace {

constexpr size_t kMaxProducts = 1'000'000;
constexpr size_t kMaxReasons = 8;

// Reasons why words (or whole texts) are not legal, by what was asked for.
using Reasons = std::map<std::string, std::map<std::string, int64_t>>;

// A layout on so many ranks, or why it is none.
struct Resolved {
  layout::Layout layout;
  std::string reason;
};

Resolved resolve(const std::string& text, const spec::Job& job) {
  Resolved resolved;
  try {
    resolved.layout = layout::parse_layout(
        text, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine), .where = ""});
  } catch (const base::InputError& error) {
    resolved.reason = error.what();
    if (resolved.reason.starts_with(": ")) resolved.reason.erase(0, 2);
    return resolved;
  }
  resolved.layout.sp = resolved.layout.sp && resolved.layout.tp > 1;
  resolved.reason = layout::legality(resolved.layout, job).reason;
  return resolved;
}

// The layouts of one number of ranks, priced.
class Collector {
 public:
  explicit Collector(std::shared_ptr<const spec::Job> job) : job_(std::move(job)), pricer_(*job_) {}

  const spec::Job& job() const { return *job_; }
  size_t size() const { return runs_.size(); }
  std::vector<PlannedRun> take() { return std::move(runs_); }

  void add(const layout::Layout& layout) {
    std::string text = layout::to_text(layout, layout::text_defaults(job_->engine));
    if (!seen_.insert(text).second) return;
    PlannedRun run;
    run.num_ranks = job_->num_gpus;
    run.job = job_;
    run.layout = layout;
    run.text = std::move(text);
    run.prediction =
        calibrate::predict(pricer_, layout, calibrate::MemoryKind::kAllocated, job_->calibration.relative_error_bar);
    runs_.push_back(std::move(run));
  }

 private:
  std::shared_ptr<const spec::Job> job_;
  cost::Pricer pricer_;
  std::set<std::string> seen_;
  std::vector<PlannedRun> runs_;
};

void collect_all(Collector& collector) {
  for (const search::Mesh& mesh : search::meshes(collector.job(), {})) {
    search::for_each_layout(
        collector.job(), {}, mesh,
        [&](const layout::Layout& layout) {
          collector.add(layout);
          return search::Visit::kNext;
        },
        [](const layout::Layout&) {});
  }
}

void check_size(const SweepSpec& spec) {
  size_t products = spec.ranks.size();
  for (const Axis& axis : spec.layouts.axes) products *= std::min(axis.words.size(), kMaxProducts);
  if (products > kMaxProducts) {
    throw base::InputError(spec.where, fmt::format("$.layouts: its axes have more than {} products", kMaxProducts));
  }
}

// Whether a reason speaks of an axis: "tp 3 does not divide 6 heads", "3 virtual stages …".
bool speaks_of(const std::string& reason, const std::string& word) {
  const std::string axis = word.substr(0, word.find_first_of("0123456789="));
  const std::map<std::string, std::string> names = {{"pp", "stage"},        {"mb", "micro-batch"}, {"zero", "ZeRO"},
                                                    {"ckpt", "checkpoint"}, {"sched", "schedule"}, {"dp", "rank"}};
  const auto name = names.find(axis);
  return reason.find(axis) != std::string::npos ||
         (name != names.end() && reason.find(name->second) != std::string::npos);
}

// Of the reasons of a word the most frequent one, of those that speak of it if some do.
std::string main_reason(const std::string& word, const std::map<std::string, int64_t>& reasons) {
  std::tuple<bool, int64_t, std::string> best;
  for (const auto& [reason, count] : reasons) best = std::max(best, std::tuple(speaks_of(reason, word), count, reason));
  return std::get<2>(best);
}

[[noreturn]] void throw_nothing_legal(const SweepSpec& spec, int64_t num_asked, const Reasons& reasons) {
  std::vector<std::string> parts;
  for (const auto& [word, why] : reasons) {
    if (parts.size() == kMaxReasons) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(fmt::format("{}: {}", word, main_reason(word, why)));
  }
  throw base::InputError(fmt::format("{}: $.layouts", spec.where),
                         fmt::format("none of {} layouts is legal on {} ranks: {}", num_asked,
                                     fmt::join(spec.ranks, ", "), fmt::join(parts, "; ")));
}

// What was asked for on one number of ranks; counts what is illegal and says why.
int64_t collect(const SweepSpec& spec, Collector& collector, Reasons& reasons) {
  int64_t num_illegal = 0;
  const auto take = [&](const std::string& text, const std::vector<std::string>& words) {
    const Resolved resolved = resolve(text, collector.job());
    if (resolved.reason.empty()) return collector.add(resolved.layout);
    ++num_illegal;
    for (const std::string& word : words) ++reasons[word][resolved.reason];
  };
  if (spec.layouts.all) {
    collect_all(collector);
    if (collector.size() == 0) {
      ++reasons["all"][search::find_plan(collector.job(), {.fix = {}, .remedies = false}).why_none_is_legal];
    }
  }
  for (const std::string& text : spec.layouts.texts) take(text, {fmt::format("\"{}\"", text)});
  if (!spec.layouts.axes.empty()) {
    search::for_each_product(spec.layouts.axes,
                             [&](const auto& words) { take(fmt::format("{}", fmt::join(words, " ")), words); });
  }
  return num_illegal;
}

bool is_more_promising(const PlannedRun& a, const PlannedRun& b) {
  const auto rank = [](const PlannedRun& run) {
    const bool fits = run.prediction.fit_probability >= 0.5;
    return std::tuple(!fits, fits ? 0 : -run.prediction.fit_probability, run.prediction.step_seconds, run.num_ranks,
                      run.text);
  };
  return rank(a) < rank(b);
}

std::shared_ptr<const spec::Job> job_on(const trainer::config::RunConfig& run, int64_t num_ranks) {
  return std::make_shared<const spec::Job>(trainer::config::job_of(run, num_ranks));
}

}  // namespace

SweepPlan plan_sweep(const SweepSpec& spec) {
  check_size(spec);
  SweepPlan plan;
  Reasons reasons;
  for (const int64_t num_ranks : spec.ranks) {
    Collector collector(job_on(spec.base, num_ranks));
    plan.num_illegal += collect(spec, collector, reasons);
    for (PlannedRun& run : collector.take()) plan.runs.push_back(std::move(run));
  }
  if (plan.runs.empty()) throw_nothing_legal(spec, plan.num_illegal, reasons);
  std::sort(plan.runs.begin(), plan.runs.end(), is_more_promising);
  return plan;
}

std::vector<PlannedRun> plan_all(const trainer::config::RunConfig& run, int64_t num_ranks, size_t limit) {
  Collector collector(job_on(run, num_ranks));
  collect_all(collector);
  std::vector<PlannedRun> runs = collector.take();
  if (runs.empty()) {
    throw base::InputError(run.where,
                           search::find_plan(collector.job(), {.fix = {}, .remedies = false}).why_none_is_legal);
  }
  std::sort(runs.begin(), runs.end(), is_more_promising);
  runs.resize(std::min(runs.size(), limit));
  return runs;
}

std::string key_of(const PlannedRun& run) { return fmt::format("{} ranks, {}", run.num_ranks, run.text); }

}  // namespace layline::sweep
