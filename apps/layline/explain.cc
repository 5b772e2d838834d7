#include "layline/search/explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/import_flags.h"
#include "apps/layline/job_flags.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/side_by_side_text.h"
#include "apps/layline/terminal.h"
#include "apps/layline/timeline.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/schedule/render.h"
#include "layline/sweep/side_by_side.h"
#include "layline/trainer/metrics/read_metrics.h"

namespace layline::app {
namespace {

using search::Explanation;

struct ExplainFlags {
  JobFlags job;
  ImportFlags import;
  bool has_engine = false, has_counts = false;
  std::string layout, against, trace, measured;
  bool timeline = false;
  bool json = false;
};

constexpr int kBarCells = 20;

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string seconds_table(const Explanation& e) {
  base::TextTable table({{.title = "where a step goes"},
                         {.title = "seconds", .align = base::Align::kRight},
                         {.title = "%", .align = base::Align::kRight},
                         {.title = ""}});
  const cost::StepPrice& price = e.priced.price;
  for (size_t i = 0; i < cost::kNumKinds; ++i) {
    const double share = price.seconds[i] / price.step_seconds;
    if (price.seconds[i] == 0) continue;
    table.add_row({spaced(cost::kKindNames[i]), fmt::format("{:.3f}", price.seconds[i]),
                   base::format_percent_number(share), base::bar(share, kBarCells, text_style())});
  }
  table.add_row({"step", fmt::format("{:.3f}", price.step_seconds), "100.0", ""});
  return table.render(text_style());
}

// All stages beside each other when there are few, else the first, the fullest and the last.
std::vector<size_t> shown_stages(const Explanation& e) {
  constexpr size_t kFew = 6;
  std::vector<size_t> shown;
  for (size_t i = 0; i < e.stages.size(); ++i) {
    const bool special = i == 0 || i + 1 == e.stages.size() || i == e.fullest_stage || i == e.slowest_stage;
    if (e.stages.size() <= kFew || special) shown.push_back(i);
  }
  return shown;
}

std::string stages_table(const Explanation& e) {
  const std::vector<size_t> shown = shown_stages(e);
  std::vector<base::TextColumn> columns = {{.title = "GiB by stage"}};
  for (const size_t i : shown) columns.push_back({.title = fmt::format("{}", i), .align = base::Align::kRight});
  columns.push_back({.title = fmt::format("of stage {}", e.fullest_stage)});
  base::TextTable table(std::move(columns));
  const memory::StageMemory& fullest = e.stages[e.fullest_stage].memory;
  const auto add = [&](const std::string& name, const auto& cell, const std::string& last) {
    std::vector<std::string> row = {name};
    for (const size_t i : shown) row.push_back(cell(e.stages[i]));
    row.push_back(last);
    table.add_row(std::move(row));
  };
  for (size_t term = 0; term < memory::kNumTerms; ++term) {
    const auto used = [&](size_t i) { return e.stages[i].memory.bytes[term] != 0; };
    if (std::none_of(shown.begin(), shown.end(), used)) continue;
    add(
        spaced(memory::kTermNames[term]),
        [&](const cost::StagePrice& stage) { return base::format_gib(stage.memory.bytes[term]); },
        base::bar(fullest.bytes[term] / fullest.total(), kBarCells, text_style()));
  }
  add("total", [](const cost::StagePrice& stage) { return base::format_gib(stage.memory.total()); }, "");
  add("layers", [](const cost::StagePrice& stage) { return fmt::format("{}", stage.group.num_layers); }, "");
  add(
      "forward ms", [](const cost::StagePrice& stage) { return fmt::format("{:.1f}", stage.forward_seconds * 1e3); },
      "");
  add(
      "backward ms", [](const cost::StagePrice& stage) { return fmt::format("{:.1f}", stage.backward_seconds * 1e3); },
      "");
  return table.render(text_style());
}

std::string losses_text(const Explanation& e) {
  std::string text =
      fmt::format("MFU {}: {} of model FLOPs at peak in a step of {}. Lost to:\n", base::format_percent(e.mfu),
                  base::format_seconds(e.ideal_seconds), base::format_seconds(e.priced.price.step_seconds));
  base::TextTable table({{.title = ""}, {.title = "points", .align = base::Align::kRight}, {.title = ""}});
  for (const search::Loss& loss : e.losses) {
    std::string what = spaced(loss.what);
    if (loss.what == cost::kKindNames[0]) what = "GEMMs below peak";
    if (loss.what == cost::kKindNames[1]) what = "attention below peak (causal half counted as done)";
    table.add_row({what, base::format_percent_number(loss.mfu), base::bar(loss.mfu, kBarCells, text_style())});
  }
  return text + table.render(text_style());
}

std::string comparison_text(const spec::Job& job, const Explanation& first, const Explanation& second) {
  const auto name = [&](const Explanation& e) {
    return layout::to_text(e.priced.layout, layout::text_defaults(job.engine));
  };
  std::string text = fmt::format("\nagainst {}:\n", name(second));
  const search::Comparison comparison = search::compare(first, second);
  const auto table_of = [&](const char* title, const auto& rows, double unit) {
    base::TextTable table({{.title = title},
                           {.title = "this", .align = base::Align::kRight},
                           {.title = "that", .align = base::Align::kRight},
                           {.title = "that - this", .align = base::Align::kRight}});
    double a = 0, b = 0;
    for (const search::Difference& row : rows) {
      table.add_row({spaced(row.what), fmt::format("{:.3f}", row.first / unit),
                     fmt::format("{:.3f}", row.second / unit),
                     fmt::format("{:+.3f}", (row.second - row.first) / unit)});
      a += row.first;
      b += row.second;
    }
    table.add_row({"all", fmt::format("{:.3f}", a / unit), fmt::format("{:.3f}", b / unit),
                   fmt::format("{:+.3f}", (b - a) / unit)});
    return table.render(text_style());
  };
  text += table_of("seconds", comparison.seconds, 1);
  text += "\n" + table_of("GiB, fullest stage", comparison.bytes, base::kGib);
  return text;
}

nlohmann::ordered_json json_of_explanation(const spec::Job& job, const Explanation& e) {
  nlohmann::ordered_json json = json_of(job, e.priced);
  json["ideal_seconds"] = e.ideal_seconds;
  json["losses"] = nlohmann::ordered_json::array();
  for (const search::Loss& loss : e.losses) {
    json["losses"].push_back({{"what", loss.what}, {"seconds", loss.seconds}, {"mfu", loss.mfu}});
  }
  json["stages"] = nlohmann::ordered_json::array();
  for (const cost::StagePrice& stage : e.stages) {
    json["stages"].push_back({{"layers", stage.group.num_layers},
                              {"memory_bytes", json_of(stage.memory)},
                              {"forward_seconds", stage.forward_seconds},
                              {"backward_seconds", stage.backward_seconds}});
  }
  json["remarks"] = e.remarks;
  return json;
}

// What is explained: the flags' layout, or one out of another framework's file.
struct Subject {
  spec::Job job;
  layout::Layout layout;
  std::optional<exporting::Imported> imported;
};

// Imports may leave out what the file says.
void want_flags(const ExplainFlags& flags) {
  const auto want = [](bool is_there, const char* flag) {
    if (!is_there) throw base::InputError(fmt::format("{} is required; see `layline explain --help`", flag));
  };
  want(!flags.job.cluster.empty(), "--cluster");
  if (!flags.import.file.empty()) return;
  want(!flags.job.model.empty(), "--model");
  want(flags.has_counts, "--gpus, --global-batch and --seq-len");
  want(!flags.layout.empty(), "--layout");
}

Subject subject_of(const ExplainFlags& flags) {
  want_flags(flags);
  if (flags.import.file.empty()) {
    const spec::Job job = make_job(flags.job);
    return {job, legal_layout(job, flags.layout, "--layout"), std::nullopt};
  }
  const exporting::Imported imported = read_import(flags.import, flags.job);
  const spec::Job job = make_job(flags.job, imported, flags.has_engine);
  const layout::Legality legality = layout::legality(imported.layout, job);
  if (!legality.legal) throw base::InputError(flags.import.file, fmt::format("illegal layout: {}", legality.reason));
  return {job, imported.layout, imported};
}

// The planner's first of the same job, for imports; nothing when nothing fits.
std::optional<Explanation> planners_first(const spec::Job& job) {
  const search::Plan plan = search::find_plan(job, {.fix = {}, .top = 1, .remedies = false});
  if (plan.best.empty()) return std::nullopt;
  return search::explain(job, plan.best.front().layout);
}

// The imported job as flags, for the next command.
JobFlags named_flags(const Subject& subject, const ExplainFlags& flags) {
  JobFlags named = flags.job;
  if (named.model.empty()) named.model = subject.job.model.name;
  if (!flags.has_engine) named.engine = subject.job.engine.name;
  named.gpus = subject.job.num_gpus;
  named.global_batch = subject.job.global_batch;
  named.sequence_length = subject.job.sequence_length;
  named.precision = spec::name_of(subject.job.precision);
  return named;
}

std::string faster_text(const Subject& subject, const ExplainFlags& flags, const Explanation& explanation,
                        const Explanation& first) {
  const double own = explanation.priced.price.step_seconds, best = first.priced.price.step_seconds;
  const std::string name = layout::to_text(first.priced.layout, layout::text_defaults(subject.job.engine));
  if (first.priced.layout == subject.layout) return "\nIt is the planner's first: nothing is predicted to be faster.\n";
  std::string text = fmt::format("\nThe planner's first: {}, {} a step, {} {}\n", name, base::format_seconds(best),
                                 base::format_percent(std::abs(1 - best / own)), best < own ? "less" : "more");
  text += comparison_text(subject.job, explanation, first);
  if (!subject.imported->is_known_model) return text;
  return text + fmt::format("\nNext:  layline export {} --layout \"{}\" --to {}\n",
                            job_command_line(named_flags(subject, flags)), name,
                            exporting::name_of(subject.imported->framework));
}

std::string headline(const spec::Job& job, const layout::Layout& layout, const Explanation& explanation) {
  const cost::StepPrice& price = explanation.priced.price;
  std::string text = job_title(job) + "\n";
  text +=
      fmt::format("{} · {} a step · {} tok/s/GPU · {}\n", layout::to_text(layout, layout::text_defaults(job.engine)),
                  base::format_seconds(price.step_seconds),
                  base::format_number(job.tokens_per_step() / price.step_seconds / static_cast<double>(job.num_gpus)),
                  calibration_title(job));
  return text + fmt::format("{} of {} GiB · fits with probability {}\n\n", base::format_gib(price.peak_memory_bytes),
                            base::format_gib(price.capacity_bytes), base::format_percent(price.fit_probability, 0));
}

void run_explain(const ExplainFlags& flags) {
  const Subject subject = subject_of(flags);
  const spec::Job& job = subject.job;
  const layout::Layout& layout = subject.layout;
  const Explanation explanation = search::explain(job, layout);
  std::optional<Explanation> other, first;
  if (!flags.against.empty()) other = search::explain(job, legal_layout(job, flags.against, "--against"));
  if (subject.imported) first = planners_first(job);
  std::optional<sweep::SideBySide> beside;
  if (!flags.measured.empty()) {
    beside = sweep::beside(job, explanation, trainer::metrics::read_metrics(flags.measured), flags.measured);
  }
  if (!flags.trace.empty()) {
    constexpr int64_t kTraced = 256;
    base::write_file_atomically(flags.trace, schedule::to_chrome_trace(timeline_of(job, explanation, kTraced)));
  }
  if (flags.json) {
    nlohmann::ordered_json json;
    json["schema_version"] = 1;
    json["job"] = json_of(job);
    json["engine"] = job.engine.name;
    json["calibration"] = job.calibration.name;
    json.update(json_of_explanation(job, explanation));
    if (other) json["against"] = json_of_explanation(job, *other);
    if (beside) json["measured"] = json_of(*beside);
    if (subject.imported) {
      json["ignored"] = subject.imported->ignored;
      json["notes"] = subject.imported->notes;
      json["planners_first"] = first ? json_of_explanation(job, *first) : nlohmann::ordered_json();
    }
    print(json_text(json));
    return;
  }
  std::string text = headline(job, layout, explanation);
  text += seconds_table(explanation) + "\n" + stages_table(explanation) + "\n" + losses_text(explanation);
  std::vector<std::string> remarks = explanation.remarks;
  if (subject.imported) remarks.insert(remarks.end(), subject.imported->notes.begin(), subject.imported->notes.end());
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) text += remark + "\n";
  if (flags.timeline) {
    const int64_t shown = 2 * layout.pp;
    text += fmt::format("\nthe pipeline, first {} micro-batches (F forward, B backward, W weight gradient):\n", shown);
    text += schedule::to_picture(timeline_of(job, explanation, shown), text_style().width);
  }
  if (beside) text += text_of(*beside);
  if (other) text += comparison_text(job, explanation, *other);
  if (first) text += faster_text(subject, flags, explanation, *first);
  print(text);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand("explain", "Say where each second and each byte of a layout goes");
  add_job_flags(*command, flags->job, /*required=*/false);
  CLI::Option* layout = command->add_option("--layout", flags->layout, "layout text; dp follows from the GPUs");
  add_import_flags(*command, flags->import, "--import");
  command->get_option("--import")->excludes(layout);
  command->add_option("--against", flags->against, "another layout, compared term by term");
  command->add_option("--measured", flags->measured, "metrics of a run of this layout, put beside the prediction");
  command->add_flag("--timeline", flags->timeline, "draw the pipeline");
  command->add_option("--trace", flags->trace, "write the pipeline as a Chrome trace (Perfetto opens it)");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Of another framework's file: layline explain --import pretrain_llama.sh --cluster h100-80gb\n"
      "Example: layline explain --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 "
      "--engine aleph-scaling --layout \"tp2 pp2 mb1 sp\"");
  command->callback([flags, command] {
    flags->has_engine = command->count("--engine") > 0;
    flags->has_counts = command->count("--gpus") * command->count("--global-batch") * command->count("--seq-len") > 0;
    run_explain(*flags);
  });
}

}  // namespace layline::app
