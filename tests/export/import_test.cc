// Scripts and configurations as people write them, and what is said of bad ones.

#include "layline/export/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layline/base/error.h"
#include "layline/export/stage_pattern.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::exporting {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string layout_of(const Imported& imported) {
  const spec::Engine engine = spec::get_engine(engine_of(imported.framework));
  return layout::to_text(imported.layout, layout::text_defaults(engine));
}

std::string message_of(const std::string& text, Framework framework, const ImportOptions& options = {.where = "x"}) {
  try {
    import_layout(text, framework, options);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

// A script in the style of Megatron-LM's examples: arrays, variables, torchrun.
const std::string kArrays = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-4}
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES --master_addr $MASTER_ADDR)
MODEL_ARGS=(
    --num-layers 40   # as the paper's
    --hidden-size 5120
    --ffn-hidden-size 13824
    --num-attention-heads 40
    --seq-length 2048
    --max-position-embeddings 2048
    --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights
    --vocab-size 32000
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size 2
    --pipeline-model-parallel-size 4
    --num-layers-per-virtual-pipeline-stage 5
    --sequence-parallel
    --use-distributed-optimizer
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    ${PARALLEL_ARGS[@]} \
    --micro-batch-size=1 --global-batch-size 256 --bf16 --recompute-activations --lr 3e-4 \
    --data-path 0.3 first 0.7 second
)";

TEST(ImportMegatron, ReadsArraysAndVariables) {
  const Imported imported = import_layout(kArrays, Framework::kMegatron, {.where = "train.sh"});
  EXPECT_EQ(layout_of(imported), "dp4 tp2 pp4 mb1 vp2 sp ckpt=selective");
  EXPECT_TRUE(imported.is_known_model);
  EXPECT_EQ(imported.model.name, "llama-2-13b");
  EXPECT_EQ(imported.num_gpus, 32);
  EXPECT_EQ(imported.global_batch, 256);
  EXPECT_EQ(imported.sequence_length, 2048);
  EXPECT_EQ(imported.precision, spec::Precision::kBf16);
  EXPECT_THAT(imported.ignored, Contains("lr 3e-4"));
  EXPECT_THAT(imported.ignored, Contains("data-path 0.3 first 0.7 second"));
  EXPECT_EQ(guess_framework(kArrays, "train.sh"), Framework::kMegatron);
}

TEST(ImportMegatron, ReadsOlderScripts) {
  const std::string script = R"(#SBATCH --nodes=2
#SBATCH --gres=gpu:a100:8
GPT_ARGS=" --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 \
  --max-position-embeddings 1024 --tokenizer-type GPT2BPETokenizer --micro-batch-size 4 --global-batch-size 64 "
CMD="pretrain_gpt.py $GPT_ARGS --tensor-model-parallel-size 2 --fp16 --transformer-impl local --recompute-granularity full
  --recompute-method block --recompute-num-layers 3"
echo "$CMD"
srun --ntasks-per-node 8 --nodes 2 bash -c "python -u $CMD"
)";
  const Imported imported = import_layout(script, Framework::kMegatron, {.where = "old.sh"});
  EXPECT_EQ(layout_of(imported), "dp8 tp2 pp1 mb4 zero0 ckpt=full:3 attn=fused-softmax");
  EXPECT_EQ(imported.num_gpus, 16);
  EXPECT_EQ(imported.model.vocab, 50257);
  EXPECT_EQ(imported.model.norm, spec::Norm::kLayerNorm);
  EXPECT_EQ(imported.precision, spec::Precision::kFp16);
}

TEST(ImportMegatron, TakesNodesOfTheJobForSrunsTasksAndOneForTorchruns) {
  const std::string options =
      " pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --max-position-embeddings 4096 "
      "--seq-length 4096 --micro-batch-size 1 --global-batch-size 128 --bf16\n";
  const auto gpus = [&](const std::string& start) {
    return import_layout("#SBATCH --nodes=4\n" + start + options, Framework::kMegatron, {.where = "x"}).num_gpus;
  };
  EXPECT_EQ(gpus("srun --ntasks-per-node=8 python"), 32);
  EXPECT_EQ(gpus("srun --nodes 2 --ntasks-per-node=8 python"), 16);
  EXPECT_EQ(gpus("torchrun --nproc_per_node 8"), 8);
}

// As Megatron-LM's examples/megatron_fsdp and examples/llama write them.
TEST(ImportMegatron, ReadsQuotedDefaultsAndQuotedPairs) {
  const std::string script =
      "SHARDING=${SHARDING:-\"optim_grads_params\"}\nDTYPE_ARGS=(\"--fp8-format hybrid\" \"--fp8-param-gather\")\n"
      "torchrun --nproc_per_node ${1:-8} --nnodes 1 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
      "--num-attention-heads 32 --max-position-embeddings 4096 --seq-length 4096 --micro-batch-size 1 "
      "--global-batch-size 128 --bf16 --use-megatron-fsdp --data-parallel-sharding-strategy $SHARDING "
      "${DTYPE_ARGS[@]}\n";
  const Imported imported = import_layout(script, Framework::kMegatron, {.where = "x"});
  EXPECT_EQ(layout_of(imported), "dp8 tp1 pp1 mb1 zero3");
  EXPECT_EQ(imported.precision, spec::Precision::kFp8);
  std::string unknown = script;
  unknown.replace(unknown.find("optim_grads_params"), 18, "optim_grad");
  EXPECT_THAT(message_of(unknown, Framework::kMegatron), HasSubstr("want no_shard, optim"));
}

// What is not known would be taken as the default, and priced.
TEST(Import, SaysWhichValuesThereAre) {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
      "--max-position-embeddings 4096 --seq-length 4096 --recompute-granularity full ";
  const auto says = [&](const std::string& option) { return message_of(script + option, Framework::kMegatron); };
  EXPECT_THAT(says("--attention-backend flsh"), HasSubstr("did you mean \"flash\""));
  EXPECT_THAT(says("--recompute-method blok"), HasSubstr("did you mean \"block\""));
  EXPECT_THAT(says("--normalization RMSNrm"), HasSubstr("did you mean \"RMSNorm\""));
  EXPECT_THAT(says("--position-embedding-type ropee"), HasSubstr("did you mean \"rope\""));
  EXPECT_EQ(says("--position-embedding-type yarn --attention-backend auto"), "");
  const std::string toml =
      "[model]\nflavor = \"8B\"\n[training]\nmixed_precision_param = \"float32\"\n[parallelism]\n"
      "fsdp_reshard_after_forward = \"alway\"\n";
  EXPECT_THAT(message_of(toml, Framework::kTorchtitan, {.where = "t", .num_gpus = 8}),
              HasSubstr("did you mean \"always\""));
}

TEST(ImportMegatron, SaysWhatIsWrong) {
  const auto with = [](const std::string& more, int64_t gpus = 0) {
    return message_of(kArrays.substr(0, kArrays.rfind("--lr")) + more, Framework::kMegatron,
                      {.where = "x", .num_gpus = gpus});
  };
  EXPECT_EQ(with(""), "");
  EXPECT_THAT(with("", 36), HasSubstr("36 is not divisible by tp 2 x pp 4"));
  EXPECT_THAT(with("--global-batch-size 255"), HasSubstr("255 is not divisible by micro-batch 1 x dp 4"));
  EXPECT_THAT(with("--micro-batch-size many"), HasSubstr("many"));
  EXPECT_THAT(with("--tensor-model-parallel-size $TP"), HasSubstr("$TP"));
  EXPECT_THAT(with("--num-experts 8"), HasSubstr("experts"));
  EXPECT_THAT(with("--fp16"), HasSubstr("--fp16"));
  EXPECT_THAT(with("--num-layers 41"), HasSubstr("41"));
  EXPECT_THAT(with("--recompute-granularity half"), HasSubstr("half"));
  EXPECT_THAT(with("--pipeline-model-parallel-layout 'Et*20|t*20L'"), HasSubstr("no multiple of pp 4"));
  EXPECT_THAT(with("--pipeline-model-parallel-layout 'Et*10|t*10|t*10|t*9L'"), HasSubstr("39 layers"));
  EXPECT_THAT(message_of("echo --num-layers 3\n", Framework::kMegatron), HasSubstr("no command"));
  EXPECT_THAT(message_of("pretrain.py --num-layers 4", Framework::kMegatron), HasSubstr("--hidden-size"));
  EXPECT_THAT(message_of("pretrain.py --micro-batch-size 4", Framework::kMegatron), HasSubstr("--model"));
  EXPECT_THAT(
      message_of("pretrain.py --micro-batch-size 4", Framework::kMegatron, {.where = "x", .model = "llama-13b"}),
      HasSubstr("--gpus"));
}

TEST(ImportTorchtitan, ReadsAConfiguration) {
  const std::string toml = R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
global_batch_size = 64
seq_len = 8192
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[metrics]
log_freq = 10
)";
  const Imported imported = import_layout(toml, Framework::kTorchtitan, {.where = "t.toml", .num_gpus = 32});
  EXPECT_EQ(layout_of(imported), "dp16 tp2 pp1 mb2 sp zero3 ckpt=selective");
  EXPECT_EQ(imported.model.name, "llama-3.1-8b");
  EXPECT_THAT(imported.ignored, ElementsAre("metrics.log_freq 10"));
  EXPECT_EQ(guess_framework(toml, "t"), Framework::kTorchtitan);
  EXPECT_THAT(message_of(toml, Framework::kTorchtitan), HasSubstr("--gpus"));
  EXPECT_THAT(message_of(toml + "= 3", Framework::kTorchtitan), HasSubstr("no TOML"));
  EXPECT_THAT(message_of("[model]\nflavor = \"9B\"\n", Framework::kTorchtitan), HasSubstr("9B"));
}

// Without a list of modules torchtitan counts embedding and head as a layer each.
TEST(ImportTorchtitan, DealsLayersAsTorchtitanDoes) {
  const std::string toml =
      "[model]\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 2048\n[parallelism]\n"
      "pipeline_parallel_degree = 4\ndata_parallel_shard_degree = 2\n";
  const Imported imported = import_layout(toml, Framework::kTorchtitan, {.where = "t.toml"});
  EXPECT_EQ(layout_of(imported), "dp2 tp1 pp4 mb1 zero2 ckpt=selective split=8,9,8,7");
  EXPECT_EQ(imported.global_batch, 16);
}

TEST(ImportDeepspeed, TakesScriptAndJsonTogether) {
  const std::string script =
      "cat <<E > ds.json\n{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": "
      "{\"stage\": 1}, \"bf16\": {\"enabled\": true}, \"steps_per_print\": 1}\nE\n"
      "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py --num-layers 40 --hidden-size 5120 --num-attention-heads "
      "40 "
      "--ffn-hidden-size 13824 --swiglu --disable-bias-linear --normalization rmsnorm --use-rotary-position-embeddings "
      "--untie-embeddings-and-output-weights --seq-length 2048 --micro-batch-size 2 --global-batch-size 64 "
      "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --bf16 --use-flash-attn-v2 --deepspeed "
      "--deepspeed_config ds.json\n";
  const Imported imported = import_layout(script, Framework::kDeepspeed, {.where = "x.sh"});
  EXPECT_EQ(layout_of(imported), "dp2 tp4 pp2 mb2");
  EXPECT_EQ(imported.num_gpus, 16);
  EXPECT_THAT(imported.ignored, ElementsAre("steps_per_print 1"));
  EXPECT_EQ(guess_framework(script, "x"), Framework::kDeepspeed);
  std::string other = script;
  other.replace(other.find(": 2,"), 4, ": 4,");
  EXPECT_THAT(message_of(other, Framework::kDeepspeed), HasSubstr("the script says 2"));
}

TEST(ImportDeepspeed, TakesAJsonAlone) {
  const std::string json =
      R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2,
          "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})";
  const ImportOptions options = {.where = "ds.json", .sequence_length = 2048, .model = "llama-13b"};
  const Imported imported = import_layout(json, Framework::kDeepspeed, options);
  EXPECT_EQ(layout_of(imported), "dp32 tp1 pp1 mb4 zero3");
  EXPECT_EQ(guess_framework(json, "x"), Framework::kDeepspeed);
  EXPECT_THAT(message_of(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4,
                             "gradient_accumulation_steps": 2})",
                         Framework::kDeepspeed, options),
              HasSubstr("10 is no multiple"));
  EXPECT_THAT(message_of(R"({"train_micro_batch_size_per_gpu": "auto"})", Framework::kDeepspeed, options),
              HasSubstr("train_micro_batch_size_per_gpu: is \"auto\""));
  EXPECT_THAT(message_of(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": "auto"}})", Framework::kDeepspeed,
                         options),
              HasSubstr("bf16.enabled: is \"auto\""));
  EXPECT_THAT(message_of(json, Framework::kDeepspeed), HasSubstr("--model"));
}

// As Hugging Face's documentation has it: what the file leaves open is told, what is not priced is said.
TEST(ImportDeepspeed, LeavesAutomaticBatchesToTheFlagsAndNotesOffloading) {
  const std::string json =
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",
          "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true}})";
  const ImportOptions options = {
      .where = "ds.json", .num_gpus = 8, .global_batch = 64, .sequence_length = 2048, .model = "llama-13b"};
  const Imported imported = import_layout(json, Framework::kDeepspeed, options);
  EXPECT_EQ(layout_of(imported), "dp8 tp1 pp1 mb4 zero2");
  EXPECT_EQ(imported.global_batch, 64);
  EXPECT_THAT(imported.notes, Contains(HasSubstr("offload_optimizer to cpu")));
}

TEST(ImportNanotron, ReadsAConfiguration) {
  const std::string yaml =
      "parallelism: {dp: 4, tp: 2, pp: 1, pp_engine: 1f1b, tp_mode: REDUCE_SCATTER}\n"
      "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 8, train_steps: 10}\n"
      "optimizer: {zero_stage: 1}\n";
  const ImportOptions options = {.where = "n.yaml", .model = "llama-3-8b"};
  const Imported imported = import_layout(yaml, Framework::kNanotron, options);
  EXPECT_EQ(layout_of(imported), "dp4 tp2 pp1 mb2 sp");
  EXPECT_EQ(imported.global_batch, 64);
  EXPECT_THAT(imported.ignored, ElementsAre("tokens.train_steps 10"));
  EXPECT_EQ(guess_framework(yaml, "n"), Framework::kNanotron);
  EXPECT_THAT(message_of("parallelism: {dp: 4}\n", Framework::kNanotron, options), HasSubstr("parallelism.tp"));
  EXPECT_THAT(message_of("a: [1\n", Framework::kNanotron, options), HasSubstr("no YAML"));
  EXPECT_THAT(message_of("- 1\n", Framework::kNanotron, options), HasSubstr("no map"));
  EXPECT_THAT(message_of("parallelism: {dp: 4, dp: 8}\n", Framework::kNanotron, options),
              HasSubstr("parallelism.dp: is there twice"));
}

// A list of experts that is passed over would price a mixture as a dense model.
TEST(Import, RefusesMixturesOfExpertsWithoutExpertParallelism) {
  const ImportOptions options = {.where = "x.yaml", .model = "llama-3-8b"};
  const std::string nanotron =
      "parallelism: {dp: 4, tp: 2, pp: 1}\n"
      "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 8}\n"
      "model: {model_config: {moe_config: {num_experts: 8, top_k: 1}}}\n";
  EXPECT_THAT(message_of(nanotron, Framework::kNanotron, options), HasSubstr("moe_config.num_experts: mixtures"));
  const std::string nemo =
      "trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}}\n"
      "data: {seq_length: 8192, micro_batch_size: 1, global_batch_size: 16}\nmodel: {num_moe_experts: 8}\n";
  EXPECT_THAT(message_of(nemo, Framework::kNemo, options), HasSubstr("num_moe_experts: mixtures"));
}

TEST(ImportNanotron, SaysWhichTensorParallelModesThereAre) {
  const ImportOptions options = {.where = "x.yaml", .model = "llama-3-8b"};
  const std::string yaml =
      "parallelism: {dp: 4, tp: 2, pp: 1, tp_mode: REDUCE_SCATER}\n"
      "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 8}\n";
  EXPECT_THAT(message_of(yaml, Framework::kNanotron, options), HasSubstr("want ALL_REDUCE or REDUCE_SCATTER"));
}

// As NeMo's megatron_gpt_config.yaml has it.
TEST(ImportNemo, ReadsNemo1sOwnNames) {
  const auto file = [](const std::string& granularity) {
    return "trainer: {devices: 8, num_nodes: 1, precision: bf16}\n"
           "model: {micro_batch_size: 1, global_batch_size: 32, tensor_model_parallel_size: 2, encoder_seq_length: "
           "2048, "
           "num_layers: 24, hidden_size: 1024, num_attention_heads: 16, max_position_embeddings: "
           "\"${.encoder_seq_length}\", activation: "
           "gelu, "
           "normalization: layernorm1p, bias: True, position_embedding_type: learned_absolute, fp8: False, "
           "activations_checkpoint_granularity: " +
           granularity + ", activations_checkpoint_method: block, activations_checkpoint_num_layers: 3}\n";
  };
  const Imported imported = import_layout(file("full"), Framework::kNemo, {.where = "n.yaml"});
  EXPECT_EQ(layout_of(imported), "dp4 tp2 pp1 mb1 zero0 ckpt=full:3");
  EXPECT_EQ(imported.precision, spec::Precision::kBf16);
  EXPECT_EQ(imported.model.mlp, spec::Mlp::kGelu);
  EXPECT_EQ(imported.model.norm, spec::Norm::kLayerNorm);
  EXPECT_EQ(imported.model.position, spec::Position::kLearned);
  EXPECT_TRUE(imported.model.tied_embeddings);
  EXPECT_EQ(layout_of(import_layout(file("selective"), Framework::kNemo, {.where = "n.yaml"})),
            "dp4 tp2 pp1 mb1 zero0 ckpt=selective");
  EXPECT_THAT(message_of(file("ful"), Framework::kNemo), HasSubstr("want selective or full"));
}

TEST(ImportNemo, ReadsSavedAndOlderConfigurations) {
  const ImportOptions options = {.where = "n.yaml", .model = "llama-3-8b"};
  const std::string saved =
      "trainer: {devices: 8, num_nodes: 2, strategy: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2, "
      "virtual_pipeline_model_parallel_size: null, sequence_parallel: true}}\n"
      "data: {seq_length: 8192, micro_batch_size: 1, global_batch_size: 16}\n";
  EXPECT_EQ(layout_of(import_layout(saved, Framework::kNemo, options)), "dp2 tp4 pp2 mb1 sp zero0");
  const std::string older =
      "trainer: {devices: 8, num_nodes: 1, precision: bf16}\n"
      "model: {micro_batch_size: 2, global_batch_size: 32, tensor_model_parallel_size: 2, encoder_seq_length: 4096, "
      "optim: {name: distributed_fused_adam}}\n";
  EXPECT_EQ(layout_of(import_layout(older, Framework::kNemo, options)), "dp4 tp2 pp1 mb2");
  EXPECT_EQ(guess_framework(older, "n"), Framework::kNemo);
}

TEST(ImportMegatron, PassesOverWhatIsNoOptionAndAnEndWithoutALine) {
  for (const std::string odd : {" ---", " --=x", " --", " -", " \\"}) {
    const Imported imported =
        import_layout(std::string(kArrays).append("\ntrue").append(odd), Framework::kMegatron, {.where = "x"});
    EXPECT_EQ(imported.layout.pp, 4) << odd;
  }
}

TEST(Import, RefusesStagesThatWouldHaveNoLayer) {
  const std::string toml = R"(
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
global_batch_size = 64
seq_len = 8192
[parallelism]
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_first_stage_less_layers = 100
)";
  EXPECT_THAT(message_of(toml, Framework::kTorchtitan, {.where = "x", .num_gpus = 16}), HasSubstr("leave one with"));
}

TEST(Import, SaysWhatIsNoFileOfAFramework) {
  for (const Framework framework : {Framework::kMegatron, Framework::kNemo, Framework::kTorchtitan,
                                    Framework::kNanotron, Framework::kDeepspeed, Framework::kLayline}) {
    EXPECT_THAT(message_of("", framework), HasSubstr("empty"));
    EXPECT_THAT(message_of(" \n", framework), HasSubstr("empty"));
    EXPECT_THAT(message_of(std::string("\x7f"
                                       "ELF\0\1",
                                       6),
                           framework),
                HasSubstr("no text file"));
    EXPECT_NE(message_of("hello", framework), "");
    EXPECT_NE(message_of("{}", framework), "");
    EXPECT_THAT(message_of(std::string(static_cast<size_t>(kMaxImportBytes) + 1, 'x'), framework), HasSubstr("larger"));
  }
  EXPECT_THROW(guess_framework("dear diary", "x"), base::InputError);
  EXPECT_EQ(guess_framework("\xEF\xBB\xBF{\"sequence_length\": 2048}", "x"), Framework::kLayline);
  EXPECT_EQ(guess_framework("\xEF\xBB\xBF#!/bin/bash\n", "x"), Framework::kMegatron);
}

// Ten levels of ten aliases would be ten thousand million values.
TEST(Import, EndsWithNestedAliases) {
  std::string yaml = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string inner = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + inner;
    for (int j = 1; j < 10; ++j) yaml += ", " + inner;
    yaml += "]\n";
  }
  EXPECT_THAT(message_of(yaml, Framework::kNanotron), HasSubstr("more than"));
}

TEST(StagePattern, IsReadAsMegatronDoes) {
  EXPECT_THAT(parse_stage_pattern("Et*3|t*4|t*3L", "x"), ElementsAre(3, 4, 3));
  EXPECT_THAT(parse_stage_pattern("Et|(tt|)*2,tL", "x"), ElementsAre(1, 2, 2, 1));
  EXPECT_THAT(parse_stage_pattern("E|tt|L", "x"), ElementsAre(0, 2, 0));
  EXPECT_EQ(stage_pattern({3, 1, 4}), "Et*3|t|t*4L");
  for (const char* bad :
       {"", "tL", "Et", "Etx", "E(tL", "Et)L", "Et*L", "Et*999999L", "EtEL", "((((((((((t))))))))))"}) {
    EXPECT_THROW(parse_stage_pattern(bad, "x"), base::InputError) << bad;
  }
}

}  // namespace
}  // namespace layline::exporting
