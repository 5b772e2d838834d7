#include "layline/trainer/loop/banner.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "layline/base/units.h"

namespace layline::trainer::loop {

namespace {

std::string row(const char* name, const std::string& text) { return fmt::format("  {:<10} {}\n", name, text); }

std::string model_text(const spec::Model& m) {
  return fmt::format(
      "{}: {} parameters, {} layers, hidden {}, {} heads ({} key-value) of {}, feed-forward {}, "
      "vocabulary {}{}",
      m.title.empty() ? m.name : m.title, base::format_short_count(static_cast<double>(m.num_parameters())),
      m.num_layers, m.hidden, m.num_heads, m.num_kv_heads, m.head_size, m.ffn_hidden, m.vocab,
      m.tied_embeddings ? ", tied head" : "");
}

std::string split_text(const TrainingJob& job) {
  std::string text;
  for (size_t i = 0; i < job.stages.size(); ++i) {
    const layout::Stage& stage = job.stages[i];
    text += fmt::format("{}{}{}{}", i == 0 ? "" : " | ", stage.has_embedding ? "embedding + " : "", stage.num_layers,
                        stage.has_head ? " + head" : "");
  }
  return text + " layers";
}

std::string sources(const std::vector<config::DataSource>& list) {
  std::string text;
  for (const config::DataSource& source : list) {
    text += (text.empty() ? "" : ", ") + source.path + (list.size() > 1 ? fmt::format(" ({:g})", source.weight) : "");
  }
  return text;
}

std::string optimizer_text(const config::OptimizerConfig& o, int64_t steps) {
  return fmt::format(
      "AdamW, learning rate {:g} to {:g} (cosine over {} steps, {} of warm-up), betas {:g} {:g}, epsilon "
      "{:g}, weight decay {:g}, clip {:g}",
      o.learning_rate, o.min_learning_rate, steps, o.warmup_steps, o.beta1, o.beta2, o.epsilon, o.weight_decay, o.clip);
}

std::string limits_text(const config::RunConfig& config) {
  std::string text = fmt::format("time-out {}", base::format_seconds(config.timeout_seconds));
  if (config.memory_limit_bytes) {
    text += fmt::format(", memory {} a rank", base::format_bytes(static_cast<double>(*config.memory_limit_bytes)));
  }
  if (config.stop_after_seconds) text += ", stop after " + base::format_seconds(*config.stop_after_seconds);
  return text;
}

std::string prediction_text(const config::Prediction& p) {
  const double peak = *std::max_element(p.memory_bytes_by_stage.begin(), p.memory_bytes_by_stage.end());
  return fmt::format("{} a step{}, {} on the fullest stage", base::format_seconds(p.step_seconds),
                     p.is_calibrated ? fmt::format(" ± {}", base::format_percent(p.relative_error_bar, 0))
                                     : std::string(" (uncalibrated)"),
                     base::format_bytes(peak));
}

}  // namespace

std::string banner(const config::RunConfig& config, const config::ResolvedLayout& resolved,
                   const config::Prediction& prediction, const TrainingJob& job, int64_t num_samples) {
  const layout::Layout& l = job.layout;
  std::string text = "Layline trains\n";
  text += row("model", model_text(config.model));
  text += row("weights", config.load.empty() ? fmt::format("drawn from seed {}", config.seed) : "from " + config.load);
  text += row("layout", fmt::format("{} ({})", resolved.text, resolved.how));
  text +=
      row("mesh", fmt::format("{} ranks = {} data x {} pipeline x {} tensor parallel; {} micro-batches of {} a step",
                              l.world_size(), l.dp, l.pp, l.tp, job.num_micro_batches(), l.mb));
  text += row("threads", fmt::format("{} a rank", at::get_num_threads()));
  text += row("stages", split_text(job));
  text += row("batch",
              fmt::format("{} sequences of {} tokens, {} steps, {} on {}", config.global_batch, config.sequence_length,
                          config.steps, config::name_of(config.precision), config::name_of(config.device)));
  text += row("data", fmt::format("{}: {} samples, {}", sources(config.data.train), base::format_count(num_samples),
                                  config.data.order == config::DataOrder::kShuffled ? "shuffled" : "sequential"));
  if (!config.data.valid.empty()) {
    text +=
        row("validation", fmt::format("{}, every {} steps", sources(config.data.valid), config.data.valid_every_steps));
  }
  text += row("optimizer", optimizer_text(config.optimizer, config.steps));
  text += row("limits", limits_text(config));
  if (!config.metrics.empty()) text += row("metrics", config.metrics);
  text += row("predicted", prediction_text(prediction));
  return text;
}

std::vector<std::string> compare_with_prediction(const config::Prediction& prediction, double step_seconds,
                                                 const std::vector<int64_t>& peak_bytes_by_stage) {
  std::vector<std::string> lines = {fmt::format("  measured: {} a step, predicted {}",
                                                base::format_seconds(step_seconds),
                                                base::format_seconds(prediction.step_seconds))};
  for (size_t stage = 0; stage < peak_bytes_by_stage.size(); ++stage) {
    lines.push_back(fmt::format("  stage {}: {} at the peak, predicted {}", stage,
                                base::format_bytes(static_cast<double>(peak_bytes_by_stage[stage])),
                                base::format_bytes(prediction.memory_bytes_by_stage[stage])));
  }
  return lines;
}

}  // namespace layline::trainer::loop
