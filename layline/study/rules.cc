#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/study/prescriptions.h"
#include "layline/study/rule.h"

namespace layline::study {
namespace {

using layout::Checkpointing;
using layout::Layout;

constexpr std::string_view kPaper = "Hagemann et al. 2024, arXiv 2311.05610";
constexpr std::string_view kBigScience = "bigscience-workshop/bigscience, train/tflops_optimization.md";
constexpr double kLargeModel = 30e9;
constexpr int64_t kLongSequence = 2048;

int64_t model_parallel(const Layout& layout) { return layout.tp * layout.pp; }

bool recomputes_nothing(const Layout& layout) { return layout.checkpointing == Checkpointing::kNone; }

// tp or pp of `less` is smaller, and the other the same.
bool is_less_parallel_in_one(const Layout& less, const Layout& more) {
  return (less.tp < more.tp && less.pp == more.pp) || (less.pp < more.pp && less.tp == more.tp);
}

std::string always(const spec::Job&) { return ""; }

Side side_if(bool follows, bool breaks) { return follows ? Side::kFollows : breaks ? Side::kBreaks : Side::kNeither; }

Rule micro_batch_1() {
  Rule rule{"micro-batch-1", "micro-batches of one sequence are fastest", kPaper, always, {Axis::kMicroBatch}};
  rule.side = [](const Layout& layout, const Surroundings&) { return side_if(layout.mb == 1, layout.mb > 1); };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return follows.mb == 1 && breaks.mb > 1;
  };
  rule.turned = [](Layout layout) {
    layout.mb *= 2;
    return layout;
  };
  return rule;
}

Rule model_parallel_over_checkpointing() {
  Rule rule{"model-parallel-over-checkpointing",
            "rather more tensor or pipeline parallelism than activation checkpointing",
            kPaper,
            [](const spec::Job& job) -> std::string {
              const auto& has = job.engine.checkpointing;
              return std::find(has.begin(), has.end(), Checkpointing::kFull) == has.end()
                         ? "the engine has no activation checkpointing"
                         : "";
            },
            {Axis::kTensor, Axis::kPipeline, Axis::kCheckpointing}};
  rule.side = [](const Layout& layout, const Surroundings&) {
    return side_if(recomputes_nothing(layout), layout.checkpointing == Checkpointing::kFull);
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return recomputes_nothing(follows) && breaks.checkpointing == Checkpointing::kFull &&
           is_less_parallel_in_one(breaks, follows);
  };
  rule.turned = [](Layout layout) {
    layout.checkpointing = Checkpointing::kFull;
    return layout;
  };
  return rule;
}

Rule shrink_before_micro_batch() {
  Rule rule{"shrink-before-micro-batch",
            "larger micro-batches only where model parallelism cannot shrink any further",
            kPaper,
            always,
            {Axis::kMicroBatch, Axis::kTensor, Axis::kPipeline}};
  rule.side = [](const Layout& layout, const Surroundings& around) {
    if (!recomputes_nothing(layout)) return Side::kNeither;
    const bool could_shrink = model_parallel(layout) > around.least_model_parallel;
    return layout.mb > 1 && could_shrink ? Side::kBreaks : Side::kFollows;
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return recomputes_nothing(follows) && follows.mb < breaks.mb && is_less_parallel_in_one(follows, breaks);
  };
  return rule;
}

Rule least_model_parallel() {
  Rule rule{"least-model-parallel",
            "the least model parallelism that fits without checkpointing",
            kPaper,
            always,
            {Axis::kTensor, Axis::kPipeline}};
  rule.side = [](const Layout& layout, const Surroundings& around) {
    if (!recomputes_nothing(layout)) return Side::kNeither;
    return model_parallel(layout) > around.least_model_parallel ? Side::kBreaks : Side::kFollows;
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return recomputes_nothing(follows) && is_less_parallel_in_one(follows, breaks);
  };
  rule.turned = [](Layout layout) {
    layout.pp *= 2;
    layout.dp /= 2;
    return layout;
  };
  return rule;
}

Rule pipeline_over_tensor() {
  Rule rule{"pipeline-over-tensor",
            "rather pipeline than tensor parallelism",
            kPaper,
            [](const spec::Job& job) -> std::string {
              if (job.num_gpus == 1) return "there is one GPU";
              if (!job.engine.has_tensor_parallel) return "the engine has no tensor parallelism";
              return job.engine.has_pipeline_parallel ? "" : "the engine has no pipeline parallelism";
            },
            {Axis::kTensor, Axis::kPipeline}};
  rule.side = [](const Layout& layout, const Surroundings&) {
    return side_if(layout.pp > layout.tp, layout.tp > layout.pp);
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return model_parallel(follows) == model_parallel(breaks) && follows.pp > breaks.pp;
  };
  rule.turned = [](Layout layout) {
    if (layout.pp % 2 != 0) return layout;
    layout.pp /= 2;
    layout.tp *= 2;
    return layout;
  };
  return rule;
}

Rule sequence_parallel() {
  Rule rule{"sequence-parallel",
            "sequence parallelism for models above 30B parameters or sequences above 2k tokens",
            kPaper,
            [](const spec::Job& job) -> std::string {
              if (!job.engine.has_sequence_parallel) return "the engine has no sequence parallelism";
              const bool is_large = static_cast<double>(job.model.num_parameters()) > kLargeModel;
              return is_large || job.sequence_length > kLongSequence
                         ? ""
                         : "the model has no more than 30B parameters, the sequences no more than 2k tokens";
            },
            {Axis::kSequenceParallel}};
  rule.side = [](const Layout& layout, const Surroundings&) {
    return side_if(layout.tp > 1 && layout.sp, layout.tp > 1 && !layout.sp);
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return follows.tp > 1 && follows.sp && !breaks.sp;
  };
  rule.turned = [](Layout layout) {
    layout.sp = false;
    return layout;
  };
  return rule;
}

Rule flash_attention_2() {
  Rule rule{"flash-attention-2",
            "FlashAttention 2 is faster than all other attention kernels",
            kPaper,
            [](const spec::Job& job) -> std::string {
              const auto& has = job.engine.attention_kernels;
              if (std::find(has.begin(), has.end(), layout::AttentionKernel::kFlash2) == has.end()) {
                return "the engine has no FlashAttention 2";
              }
              return has.size() > 1 ? "" : "the engine has no other attention kernel";
            },
            {Axis::kAttention}};
  rule.side = [](const Layout& layout, const Surroundings&) {
    const bool follows = layout.attention == layout::AttentionKernel::kFlash2;
    return side_if(follows, !follows);
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return follows.attention == layout::AttentionKernel::kFlash2 && breaks.attention != follows.attention;
  };
  rule.breaking = [](const spec::Engine& engine) {
    // The next in the order of the enumerators, which is the order of speed.
    std::vector<layout::AttentionKernel> kernels = engine.attention_kernels;
    std::sort(kernels.begin(), kernels.end());
    std::vector<layout::LayoutConstraints> others(1);
    others.front().attention = kernels.at(1);
    return others;
  };
  return rule;
}

Rule fused_norm() {
  Rule rule{"fused-norm",
            "the fused RMSNorm kernel is faster than unfused norms",
            kPaper,
            [](const spec::Job& job) -> std::string {
              return job.engine.norm_kernels.size() > 1 ? "" : "the engine has no other norm kernel";
            },
            {Axis::kNorm}};
  rule.side = [](const Layout& layout, const Surroundings&) {
    const bool follows = layout.norm == layout::NormKernel::kFused;
    return side_if(follows, !follows);
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings&) {
    return follows.norm == layout::NormKernel::kFused && breaks.norm == layout::NormKernel::kUnfused;
  };
  rule.breaking = [](const spec::Engine&) {
    std::vector<layout::LayoutConstraints> others(1);
    others.front().norm = layout::NormKernel::kUnfused;
    return others;
  };
  return rule;
}

Rule tensor_parallel_in_node() {
  Rule rule{"tensor-parallel-in-node",
            "tensor parallelism never beyond a node",
            kBigScience,
            [](const spec::Job& job) -> std::string {
              if (!job.engine.has_tensor_parallel) return "the engine has no tensor parallelism";
              return job.num_gpus > job.cluster.gpus_per_node ? "" : "there is one node";
            },
            {Axis::kTensor, Axis::kPipeline}};
  rule.side = [](const Layout& layout, const Surroundings& around) {
    return layout.tp > around.gpus_per_node ? Side::kBreaks : Side::kFollows;
  };
  rule.is_pair = [](const Layout& follows, const Layout& breaks, const Surroundings& around) {
    return model_parallel(follows) == model_parallel(breaks) && follows.tp <= around.gpus_per_node &&
           breaks.tp > around.gpus_per_node;
  };
  return rule;
}

Rule prescription(std::string_view id, std::string_view statement, std::string_view source,
                  std::string (*why_not)(const spec::Job&),
                  std::vector<Prescription> (*prescribe)(const spec::Job&, cost::Pricer&)) {
  Rule rule{id, statement, source, why_not, {}};
  rule.prescribe = prescribe;
  return rule;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      micro_batch_1(),
      model_parallel_over_checkpointing(),
      shrink_before_micro_batch(),
      least_model_parallel(),
      pipeline_over_tensor(),
      sequence_parallel(),
      flash_attention_2(),
      fused_norm(),
      tensor_parallel_in_node(),
      prescription("megatron-table",
                   "7B: tp1 pp1; 13B: tp2 pp1; 70B: tp4 pp4; 405B: tp8 pp8, cp2 where sequences are long",
                   "Megatron's guides", why_not_in_megatron_table, megatron_table),
      prescription("18-bytes",
                   "tensor parallelism until 18 bytes a parameter take 75 % of memory, then pipeline stages",
                   "Megatron's guides; bigscience-workshop/bigscience", always, fill_the_node),
      prescription("bigscience",
                   "as much data parallelism as fits; pipeline stages until 18 bytes a parameter take 75 % of "
                   "memory; tensor parallelism only for layers that do not fit",
                   kBigScience, always, bigscience),
      prescription("hugging-face",
                   "in a node data parallelism, then ZeRO; between nodes ZeRO on fast links, else "
                   "pipelines of tensor-parallel nodes",
                   "huggingface/transformers#12688", always, hugging_face),
  };
  return all;
}

const Rule& find_rule(std::string_view id) {
  std::vector<std::string> known;
  for (const Rule& rule : rules()) {
    if (rule.id == id) return rule;
    known.emplace_back(rule.id);
  }
  throw base::InputError(base::unknown_name_message("rule", id, known));
}

}  // namespace layline::study
