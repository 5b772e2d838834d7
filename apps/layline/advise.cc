#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/layline/advise_text.h"
#include "apps/layline/command.h"
#include "apps/layline/job_flags.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/terminal.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"

namespace layline::app {
namespace {

struct AdviseFlags {
  JobFlags job;
  std::vector<std::string> runs;
  bool json = false;
};

std::optional<study::EvidenceSummary> evidence_of(const std::vector<std::string>& files) {
  if (files.empty()) return std::nullopt;
  std::vector<runs::RunTable> tables;
  for (const std::string& file : files) tables.push_back(runs::read_runs(file));
  return study::evidence_from_runs(tables, {});
}

std::string head_text(const study::Advice& advice) {
  const spec::Job& job = *advice.job;
  std::string text = job_title(job) + "\n";
  text += fmt::format("{} legal layouts, {} fit · {}\n", base::format_count(advice.num_legal),
                      base::format_count(advice.num_fit), calibration_title(job));
  if (!advice.best) return text + "\n" + advice.why_nothing_fits + "\n";
  const double seconds = advice.best->price.step_seconds;
  text += fmt::format("the fastest by price: {}, {:.4g} s a step, {} MFU\n",
                      layout::to_text(advice.best->layout, layout::text_defaults(job.engine)), seconds,
                      base::format_percent(cost::model_flops_utilization(job, seconds)));
  return text;
}

void run_advise(const AdviseFlags& flags) {
  const spec::Job job = make_job(flags.job);
  const std::optional<study::EvidenceSummary> evidence = evidence_of(flags.runs);
  const study::Advice advice = study::advise(job);
  print(flags.json ? json_text(advice_json(advice, evidence)) : head_text(advice) + advice_text(advice, evidence));
  if (!advice.best) throw Exit{kNothingFits};
}

}  // namespace

void add_advise(CLI::App& app) {
  auto flags = std::make_shared<AdviseFlags>();
  CLI::App* command = app.add_subcommand("advise", "Try the paper's advice and rules of thumb on a job");
  add_job_flags(*command, flags->job);
  command->add_option("--runs", flags->runs, "run records (CSV): what they say of each rule")->type_name("RUNS.csv");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example: layline advise --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 "
      "--engine aleph-scaling --runs data/published/hagemann2024_a100.csv");
  command->callback([flags] { run_advise(*flags); });
}

}  // namespace layline::app
