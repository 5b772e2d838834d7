// Random jobs and legal layouts of them.
#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <string>
#include <vector>

#include "layline/export/import.h"
#include "layline/export/launch_files.h"
#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"
#include "layline/spec/registry.h"

namespace layline::exporting {

using layout::Layout;

// In names of tests.
inline void PrintTo(Framework framework, std::ostream* out) { *out << name_of(framework); }

// Any of the choices.
template <typename T>
T any_of(const std::vector<T>& choices) {
  return choices[*rc::gen::inRange<size_t>(0, choices.size())];
}

inline spec::Engine engine_for(Framework framework) { return spec::get_engine(engine_of(framework)); }

inline spec::Precision any_precision(const spec::Job& job) {
  std::vector<spec::Precision> usable;
  for (const spec::Precision precision : job.engine.precisions) {
    if (job.cluster.gpu.peak_flops_per_second(precision) > 0) usable.push_back(precision);
  }
  return any_of(usable);
}

inline spec::Job any_job(const spec::Engine& engine) {
  spec::Job job;
  job.engine = engine;
  job.model = spec::get_model(
      any_of<std::string>({"llama-1-7b", "llama-13b", "llama-30b", "llama-2-70b", "llama-65b", "llama-3-8b",
                           "mistral-7b", "llama-tiny", "gpt3-175b", "qwen2.5-7b", "llama-3.1-70b", "llama-3.2-1b"}));
  job.cluster = spec::get_cluster(any_of<std::string>({"a100-80gb", "h100-80gb", "h200-141gb", "b200"}));
  job.precision = any_precision(job);
  job.num_gpus = any_of<int64_t>({1, 2, 4, 8, 16, 24, 32, 64, 128, 768, 1024});
  if (job.num_gpus > job.cluster.gpus_per_node) job.num_gpus *= job.cluster.gpus_per_node / 8;
  job.global_batch = any_of<int64_t>({8, 16, 48, 64, 96, 256, 768, 1024, 2048, 3072});
  job.sequence_length = any_of<int64_t>({512, 2048, 4096, 8192, 32768});
  return job;
}

// The layers dealt to the stages at random.
inline std::vector<int64_t> any_split(int64_t num_layers, int64_t num_stages) {
  std::vector<int64_t> layers(static_cast<size_t>(num_stages), num_layers / num_stages);
  for (int64_t i = 0; i < num_layers % num_stages; ++i) ++layers[static_cast<size_t>(i)];
  for (int moves = *rc::gen::inRange(0, 3); moves > 0; --moves) {
    const size_t from = *rc::gen::inRange<size_t>(0, layers.size()), to = *rc::gen::inRange<size_t>(0, layers.size());
    if (layers[from] < 2) continue;
    --layers[from];
    ++layers[to];
  }
  return layers;
}

// One layout in which anything may be wrong; axes divide the GPUs.
inline Layout one_layout(const spec::Job& job) {
  const spec::Engine& engine = job.engine;
  Layout layout;
  layout.pp = any_of(search::divisors(job.num_gpus));
  layout.tp = any_of(search::divisors(job.num_gpus / layout.pp));
  const int64_t left = job.num_gpus / layout.pp / layout.tp;
  layout.cp = engine.has_context_parallel && *rc::gen::inRange(0, 3) == 0 ? any_of(search::divisors(left)) : 1;
  layout.dp = left / layout.cp;
  if (engine.has_virtual_stages && layout.pp > 1 && *rc::gen::inRange(0, 2) == 0)
    layout.vp = any_of<int64_t>({2, 3, 4});
  layout.schedule = layout.vp > 1 ? layout::ScheduleKind::kInterleaved : any_of(engine.schedules);
  if (layout.pp == 1 && *rc::gen::inRange(0, 4) != 0) layout.schedule = layout::ScheduleKind::kOneFOneB;
  layout.mb = job.global_batch % layout.dp == 0 ? any_of(search::divisors(job.global_batch / layout.dp)) : 1;
  layout.sp = layout.tp > 1 && (*rc::gen::inRange(0, 4) != 0);
  layout.zero = any_of(engine.zero_stages);
  if (layout.zero == 3 && *rc::gen::inRange(0, 3) == 0) layout.hsdp = any_of(search::divisors(layout.dp));
  layout.checkpointing = any_of(engine.checkpointing);
  if (engine.has_partial_checkpointing && layout.checkpointing == layout::Checkpointing::kFull) {
    layout.full_layers = *rc::gen::inRange<int64_t>(0, 4);
  }
  layout.split = any_of(engine.splits);
  if (layout.split == layout::SplitKind::kExplicit && job.model.num_layers >= layout.num_virtual_stages()) {
    layout.explicit_split = any_split(job.model.num_layers, layout.num_virtual_stages());
  }
  // Mostly the kernels that people run.
  const bool usual = *rc::gen::inRange(0, 4) != 0;
  layout.attention = usual ? engine.default_attention : any_of(engine.attention_kernels);
  layout.norm = usual ? engine.default_norm : any_of(engine.norm_kernels);
  return layout;
}

// A legal layout of the job, one with data parallelism alone where none was drawn.
inline Layout any_legal_layout(const spec::Job& job) {
  for (int tries = 0; tries < 60; ++tries) {
    const Layout layout = one_layout(job);
    if (layout::is_legal(layout, job)) return layout;
  }
  Layout layout;
  layout.dp = job.num_gpus;
  layout.zero = job.engine.zero_stages.front();
  layout.split = job.engine.default_split;
  layout.attention = job.engine.default_attention;
  layout.norm = job.engine.default_norm;
  return layout;
}

// The file that an import begins with, and the others by name.
inline const LaunchFile& main_file(const LaunchFiles& files, Framework framework) {
  const bool is_script = framework == Framework::kMegatron || framework == Framework::kDeepspeed;
  return is_script ? files.files.back() : files.files.front();
}

inline Imported import_files(const LaunchFiles& files, Framework framework) {
  const LaunchFile& main = main_file(files, framework);
  ImportOptions options;
  options.where = main.name;
  options.open = [&](const std::string& name) -> std::string {
    for (const LaunchFile& file : files.files) {
      if (file.name == name) return file.text;
    }
    return "";
  };
  return import_layout(main.text, framework, options);
}

}  // namespace layline::exporting
