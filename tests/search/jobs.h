// Random small jobs and constraints for the tests of this folder.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"
#include "layline/spec/registry.h"

namespace layline::search {

// A model of at most 12 layers with sizes that some axes divide and others do not.
inline spec::Model any_model() {
  spec::Model model = spec::get_model("llama-1-7b");
  model.name = model.title = "test";
  model.num_layers = *rc::gen::element<int64_t>(1, 2, 3, 4, 6, 7, 8, 12);
  model.num_heads = *rc::gen::element<int64_t>(4, 6, 8, 16, 32);
  model.num_kv_heads = model.num_heads / *rc::gen::element<int64_t>(1, 2);
  model.head_size = *rc::gen::element<int64_t>(64, 128);
  model.hidden = model.num_heads * model.head_size;
  model.ffn_hidden = *rc::gen::element<int64_t>(2, 3, 4) * model.hidden;
  model.vocab = *rc::gen::element<int64_t>(1000, 32000, 128256);
  return model;
}

inline std::string any_engine() {
  return *rc::gen::element<std::string>("layline", "megatron-core", "torchtitan", "aleph-scaling", "nanotron");
}

// On 1 to 64 GPUs, with a memory in which some layouts fit and others do not. Uncalibrated.
inline spec::Job any_job() {
  spec::Job job;
  job.model = any_model();
  job.cluster = spec::get_cluster("a100-80gb");
  job.cluster.gpu.memory_bytes = *rc::gen::element<double>(4e9, 8e9, 20e9, 80e9);
  job.engine = spec::get_engine(any_engine());
  job.num_gpus = *rc::gen::element<int64_t>(1, 2, 4, 6, 8, 16, 24, 32, 64);
  job.global_batch = *rc::gen::element<int64_t>(1, 2, 8, 12, 30, 64, 96, 256);
  job.sequence_length = *rc::gen::element<int64_t>(500, 512, 2048, 8192);
  return job;
}

inline layout::LayoutConstraints any_constraints() {
  const std::vector<std::string> words = {
      "dp4",          "tp1",         "tp2",         "tp4",      "pp1",           "pp2",
      "pp4",          "mb1",         "mb2",         "cp2",      "vp1",           "vp2",
      "sp",           "sp0",         "zero0",       "zero1",    "zero3",         "hsdp2",
      "ckpt=none",    "ckpt=full",   "sched=gpipe", "sched=zb", "split=uniform", "split=balanced",
      "attn=unfused", "norm=unfused"};
  const auto count = *rc::gen::element<size_t>(0, 0, 1, 1, 2, 3);
  std::string text, used;
  for (size_t i = 0; i < count; ++i) {
    const std::string word = *rc::gen::elementOf(words);
    const std::string kind = word.substr(0, 2) == "hs"                     ? "ze"
                             : word.substr(0, 2) == "sp" && word[2] == 'l' ? "=s"
                                                                           : word.substr(0, 2);
    if (used.find(kind + ",") != std::string::npos) continue;
    used += kind + ",";
    text += word + " ";
  }
  return layout::parse_constraints(text);
}

}  // namespace layline::search
