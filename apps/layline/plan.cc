#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/job_flags.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/search/explain.h"
#include "layline/search/search.h"

namespace layline::app {
namespace {

using search::Plan;
using search::PricedLayout;

struct PlanFlags {
  JobFlags job;
  std::string fix;
  int64_t top = 10;
  std::string tokens, dollars;
  bool json = false;
};

constexpr double kSecondsPerDay = 86400;
constexpr double kSecondsPerHour = 3600;

// What training on this many tokens takes.
struct Bill {
  double days = 0, gpu_hours = 0, dollars = 0;
};

Bill bill_of(const spec::Job& job, double step_seconds, double tokens, double dollars_per_hour) {
  const double seconds = tokens / job.tokens_per_step() * step_seconds;
  const double hours = seconds / kSecondsPerHour * static_cast<double>(job.num_gpus);
  return {seconds / kSecondsPerDay, hours, hours * dollars_per_hour};
}

double positive_number(const std::string& text, const char* flag) {
  if (text.empty()) return 0;
  return static_cast<double>(base::parse_count(text, 1, int64_t{1} << 60, flag));
}

double dollars_of(const std::string& text) {
  if (text.empty()) return 0;
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || !(value >= 0 && value <= 1e6)) {
    throw base::InputError("--dollars-per-gpu-hour", fmt::format("found \"{}\", want a number from 0 to 1e6", text));
  }
  return value;
}

std::string text_of(const spec::Job& job, const layout::Layout& layout) {
  return layout::to_text(layout, layout::text_defaults(job.engine));
}

bool is_measured(const Plan& plan) {
  return std::any_of(plan.best.begin(), plan.best.end(),
                     [](const PricedLayout& entry) { return entry.measured_seconds.has_value(); });
}

base::TextTable layout_table(bool measured) {
  return base::TextTable({{.title = ""},
                          {.title = "layout", .can_shorten = true},
                          {.title = "step s", .align = base::Align::kRight},
                          {.title = measured ? "real s" : "", .align = base::Align::kRight},
                          {.title = "MFU %", .align = base::Align::kRight},
                          {.title = "tok/s/GPU", .align = base::Align::kRight, .drop_priority = 2},
                          {.title = "GiB", .align = base::Align::kRight},
                          {.title = "of memory", .drop_priority = 3},
                          {.title = "margin", .align = base::Align::kRight, .drop_priority = 1}});
}

double known_seconds(const PricedLayout& priced) { return priced.measured_seconds.value_or(priced.price.step_seconds); }

void add_row(base::TextTable& table, const spec::Job& job, const std::string& mark, const PricedLayout& priced) {
  const cost::StepPrice& price = priced.price;
  const double seconds = known_seconds(priced);
  const double tokens = job.tokens_per_step() / seconds / static_cast<double>(job.num_gpus);
  table.add_row({mark, text_of(job, priced.layout), fmt::format("{:.4g}", price.step_seconds),
                 priced.measured_seconds ? fmt::format("{:.4g}", *priced.measured_seconds) : "",
                 base::format_percent_number(cost::model_flops_utilization(job, seconds)), base::format_number(tokens),
                 base::format_gib(price.peak_memory_bytes),
                 base::bar(price.peak_memory_bytes / price.capacity_bytes, 12, text_style(), true),
                 base::format_gib(price.capacity_bytes - price.peak_memory_bytes)});
}

std::string best_text(const spec::Job& job, const Plan& plan, const PlanFlags& flags) {
  base::TextTable table = layout_table(is_measured(plan));
  for (size_t i = 0; i < plan.best.size(); ++i) add_row(table, job, fmt::format("{}", i + 1), plan.best[i]);
  if (plan.default_layout) add_row(table, job, "-", *plan.default_layout);
  std::string text = table.render(text_style());
  if (plan.default_layout) {
    const double slower = known_seconds(*plan.default_layout) / known_seconds(plan.best.front()) - 1;
    text += fmt::format("\n-: what most people start with{}\n",
                        plan.default_layout->price.fits ? fmt::format(", {} slower", base::format_percent(slower, 0))
                                                        : "; it does not fit");
  }
  if (is_measured(plan))
    text += "real s: measured in a published run of this very job; such layouts are ranked by it.\n";
  text += "\nWhy the first wins:\n";
  for (const std::string& reason : search::reasons_to_win(job, plan)) text += fmt::format("  {}\n", reason);
  const double tokens = positive_number(flags.tokens, "--tokens");
  if (tokens > 0) {
    const double price = dollars_of(flags.dollars);
    const Bill bill = bill_of(job, known_seconds(plan.best.front()), tokens, price);
    text += fmt::format("\n{} tokens take {:.1f} days, {} GPU-hours{}\n", base::format_short_count(tokens), bill.days,
                        base::format_number(bill.gpu_hours),
                        price > 0 ? fmt::format(", ${}", base::format_number(bill.dollars)) : "");
  }
  text += fmt::format("\nNext:  layline explain {} --layout \"{}\"\n", job_command_line(flags.job),
                      text_of(job, plan.best.front().layout));
  return text;
}

std::string miss_text(const spec::Job& job, const PricedLayout& miss) {
  const search::Explanation explanation = search::explain(job, miss.layout);
  const cost::StagePrice& stage = explanation.stages[explanation.fullest_stage];
  std::vector<std::pair<double, std::string_view>> terms;
  for (size_t i = 0; i < memory::kNumTerms; ++i) terms.emplace_back(stage.memory.bytes[i], memory::kTermNames[i]);
  std::sort(terms.rbegin(), terms.rend());
  return fmt::format("{} GiB over: {} (stage {}: {} {}, {} {}, {} {})",
                     base::format_gib(miss.price.peak_memory_bytes - miss.price.capacity_bytes),
                     text_of(job, miss.layout), stage.group.first_rank, terms[0].second,
                     base::format_gib(terms[0].first), terms[1].second, base::format_gib(terms[1].first),
                     terms[2].second, base::format_gib(terms[2].first));
}

std::string nothing_fits_text(const spec::Job& job, const Plan& plan) {
  if (plan.num_legal == 0) {
    return fmt::format("No layout is legal. Most often: {}.\n", plan.why_none_is_legal);
  }
  std::string text = "No layout fits. The nearest:\n";
  for (const PricedLayout& miss : plan.nearest_misses) text += fmt::format("  {}\n", miss_text(job, miss));
  if (plan.remedies.empty()) return text + "None of more GPUs, shorter sequences or ZeRO-3 would make it fit.\n";
  text += "It would fit with:\n";
  for (const search::Remedy& remedy : plan.remedies) {
    text += fmt::format("  {}: {}, {} a step\n", remedy.change, text_of(job, remedy.layout.layout),
                        base::format_seconds(remedy.layout.price.step_seconds));
  }
  return text;
}

nlohmann::ordered_json json_of_plan(const spec::Job& job, const Plan& plan, const PlanFlags& flags) {
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["job"] = json_of(job);
  json["engine"] = job.engine.name;
  json["calibration"] = job.calibration.name;
  json["num_legal"] = plan.num_legal;
  json["num_fit"] = plan.num_fit;
  json["num_priced"] = plan.num_priced;
  json["num_pruned"] = plan.num_pruned;
  json["search_seconds"] = plan.search_seconds;
  const auto list = [&](const std::vector<PricedLayout>& layouts) {
    auto array = nlohmann::ordered_json::array();
    for (const PricedLayout& priced : layouts) array.push_back(json_of(job, priced));
    return array;
  };
  json["layouts"] = list(plan.best);
  json["default_layout"] = plan.default_layout ? json_of(job, *plan.default_layout) : nlohmann::ordered_json();
  json["nearest_misses"] = list(plan.nearest_misses);
  json["pareto"] = list(plan.pareto);
  json["remedies"] = nlohmann::ordered_json::array();
  for (const search::Remedy& remedy : plan.remedies) {
    json["remedies"].push_back({{"change", remedy.change},
                                {"layout", text_of(job, remedy.layout.layout)},
                                {"predicted_step_seconds", remedy.layout.price.step_seconds}});
  }
  if (plan.num_legal == 0) json["why_none_is_legal"] = plan.why_none_is_legal;
  const double tokens = positive_number(flags.tokens, "--tokens");
  if (tokens > 0 && !plan.best.empty()) {
    const Bill bill = bill_of(job, known_seconds(plan.best.front()), tokens, dollars_of(flags.dollars));
    json["training"] = {
        {"tokens", tokens}, {"days", bill.days}, {"gpu_hours", bill.gpu_hours}, {"dollars", bill.dollars}};
  }
  return json;
}

void run_plan(const PlanFlags& flags) {
  const spec::Job job = make_job(flags.job);
  positive_number(flags.tokens, "--tokens");
  dollars_of(flags.dollars);
  const Plan plan = search::find_plan(
      job, {.fix = layout::parse_constraints(flags.fix, "--fix"), .top = static_cast<size_t>(flags.top)});
  if (flags.json) {
    print(json_text(json_of_plan(job, plan, flags)));
  } else {
    std::string text = job_title(job) + "\n";
    text += fmt::format("{} legal layouts searched in {}, {} fit · {} · MFU by PaLM's formula (6N + 12Lhs)\n\n",
                        base::format_count(plan.num_legal), base::format_seconds(plan.search_seconds),
                        base::format_count(plan.num_fit), calibration_title(job));
    text += plan.best.empty() ? nothing_fits_text(job, plan) : best_text(job, plan, flags);
    print(text);
  }
  if (plan.best.empty()) throw Exit{kNothingFits};
}

}  // namespace

void add_plan(CLI::App& app) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand("plan", "Find the fastest layouts for a job");
  add_job_flags(*command, flags->job);
  command->add_option("--fix", flags->fix, "search only layouts with this, such as \"tp2 sp\"");
  command->add_option("--top", flags->top, "layouts to show")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--tokens", flags->tokens, "tokens to train on: adds days and GPU-hours (300e9, 300B)");
  command->add_option("--dollars-per-gpu-hour", flags->dollars, "adds the cost");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example: layline plan --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 "
      "--engine aleph-scaling");
  command->callback([flags] { run_plan(*flags); });
}

}  // namespace layline::app
