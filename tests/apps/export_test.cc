// `layline export` and `layline import` as a user types them, and `explain --import`.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

using nlohmann::json;

const std::string kJob = "--model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 ";

class Export : public Program {};

TEST_F(Export, WritesFilesThatImportReads) {
  const struct {
    const char *framework, *main, *layout;
  } cases[] = {{"megatron", "megatron.sh", "dp16 tp2 pp2 mb1 sp"},
               {"nemo", "nemo.yaml", "dp16 tp2 pp2 mb1 sp"},
               {"torchtitan", "torchtitan.toml", "dp16 tp2 pp2 mb1 sp zero3"},
               {"nanotron", "nanotron.yaml", "dp32 tp2 pp1 mb1 sp"},
               {"deepspeed", "deepspeed.sh", "dp16 tp2 pp2 mb1"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.framework);
    const std::string to = std::string(" --to ") + one.framework;
    const std::string precision = one.framework == std::string("deepspeed") ? " --precision bf16" : "";
    const std::string attention = one.framework == std::string("deepspeed") ? " attn=fused-softmax" : "";
    const Result written = layline(
        fmt::format("export {}{}{} --layout \"{}{}\" --output out", kJob, to, precision, one.layout, attention));
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_TRUE(has(written.out, "Next:")) << written.out;
    const Result read = layline(std::string("import out/") + one.main + " --json");
    ASSERT_EQ(read.code, 0) << read.err;
    const json result = json::parse(read.out);
    EXPECT_EQ(result["schema_version"], 1);
    EXPECT_EQ(result["framework"], one.framework);
    EXPECT_EQ(result["layout"], one.layout + attention);
    EXPECT_EQ(result["job"]["model"], "llama-13b");
    EXPECT_EQ(result["job"]["num_gpus"], 64);
    EXPECT_EQ(result["job"]["global_batch"], 2048);
    EXPECT_EQ(result["legal"], true);
  }
}

// The files are parsed by Python, as the frameworks' own programs do it; YAML where PyYAML is there.
TEST_F(Export, WritesFilesThatPythonReads) {
  if (shell("python3 -c 'import tomllib'").code != 0) GTEST_SKIP() << "no Python with tomllib";
  const std::string own = source("scripts/python.sh");
  std::string python = "python3";
  bool has_yaml = shell("python3 -c 'import yaml'").code == 0;
  if (!has_yaml && shell(own + " -c 'import yaml, tomllib'").code == 0) {
    python = own;
    has_yaml = true;
  }
  for (const char* framework : {"megatron", "nemo", "torchtitan", "nanotron", "deepspeed"}) {
    SCOPED_TRACE(framework);
    const Result written = layline("export " + kJob + "--to " + framework + " --json --output out");
    ASSERT_EQ(written.code, 0) << written.err;
    std::string files;
    const json result = json::parse(written.out);
    for (const auto& [name, text] : result["files"].items()) {
      if (name.ends_with(".yaml") && !has_yaml) continue;
      files += " out/" + name;
    }
    const Result parsed = shell(fmt::format("{} {}{}", python, source("tests/export/parse_files.py"), files));
    EXPECT_EQ(parsed.code, 0) << parsed.err;
  }
}

// torchtitan's parser reads its files; Megatron-Core's TransformerConfig takes the options of Megatron-LM's and NeMo's.
TEST_F(Export, WritesFilesThatTheFrameworksParsersUnderstand) {
  std::string packages = shell(source("scripts/unpack_wheels.sh") + " --print frameworks").out;
  packages.erase(packages.find_last_not_of('\n') + 1);
  const std::string python = source("scripts/python.sh");
  if (!std::filesystem::is_directory(packages + "/torchtitan") || shell(python + " --version").code != 0)
    GTEST_SKIP() << "no frameworks' packages in " << packages << ": run scripts/setup.sh frameworks";
  const struct {
    const char *framework, *layout;
  } cases[] = {{"megatron", "dp16 tp2 pp2 mb1 sp"},
               {"megatron", "dp4 tp2 pp4 mb1 cp2 sp ckpt=full"},
               {"megatron", "dp8 tp4 pp2 mb2 vp4 sp ckpt=full:3"},
               {"megatron", "dp32 tp1 pp2 mb2 vp7 ckpt=selective split=balanced"},
               {"nemo", "dp16 tp2 pp2 mb1 sp ckpt=selective"},
               {"nemo", "dp4 tp2 pp4 mb1 cp2 sp ckpt=full"},
               {"nemo", "dp8 tp4 pp2 mb2 vp4 sp ckpt=full:3"},
               {"torchtitan", "dp16 tp2 pp2 mb1 sp zero3"},
               {"torchtitan", "dp8 tp2 pp2 mb1 cp2 vp2 sp zero3 ckpt=full"},
               {"torchtitan", "dp64 tp1 pp1 mb2 hsdp32 ckpt=selective"}};
  std::string arguments = " '" + packages + "' 'gpus=64 global_batch=2048 seq_len=2048 layers=40 hidden=5120 heads=40'";
  for (const auto& one : cases) {
    SCOPED_TRACE(std::string(one.framework) + ", " + one.layout);
    const std::string folder = "out" + std::to_string(&one - cases);
    const Result written =
        layline(fmt::format("export {}--to {} --layout \"{}\" --output {}", kJob, one.framework, one.layout, folder));
    ASSERT_EQ(written.code, 0) << written.err;
    arguments += fmt::format(" {} {} '{}'", one.framework, folder, one.layout);
  }
  const Result parsed = shell(fmt::format("{} {}{}", python, source("tests/export/frameworks_parse.py"), arguments));
  EXPECT_EQ(parsed.code, 0) << parsed.err;
}

TEST_F(Export, OfALaylineRunIsReadByTrain) {
  const std::string job = "--model llama-tiny --cluster cpu --gpus 4 --global-batch 32 --seq-len 64 ";
  const Result written = layline("export " + job + "--layout \"tp2 pp2 mb4 sp\" --to layline --output .");
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_TRUE(has(written.out, "layline train run.json --nproc 4")) << written.out;
  write_text(path("corpus.txt"), std::string(100'000, 'x'));
  const Result check = layline("train run.json --nproc 4 --check");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_TRUE(has(check.out, "dp1 tp2 pp2 mb4 sp")) << check.out;
  const json read = json::parse(layline("import run.json --json").out);
  EXPECT_EQ(read["layout"], "dp1 tp2 pp2 mb4 sp");
}

TEST_F(Export, PrintsAScriptAndTakesThePlannersFirst) {
  const Result printed = layline("export " + kJob + "--to megatron --launcher torchrun");
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_TRUE(printed.out.starts_with("#!/bin/bash")) << printed.out;
  EXPECT_TRUE(has(printed.err, "planner's first")) << printed.err;
  const json result = json::parse(layline("export " + kJob + "--to megatron --json").out);
  EXPECT_EQ(result["schema_version"], 1);
  EXPECT_TRUE(result["files"].contains("megatron.sh"));
}

TEST_F(Export, SaysWhatIsWrong) {
  expect_error(layline("export " + kJob + "--to megatrom"), {"--to", "megatrom", "megatron"});
  expect_error(layline("export " + kJob + "--to megatron --launcher slrum"), {"--launcher", "slurm"});
  expect_error(layline("export " + kJob), {"--to"});
  expect_error(layline("export " + kJob + "--to megatron --layout \"tp3\""), {"tp"});
  expect_error(layline("export " + kJob + "--engine layline --to megatron --layout \"pp2 sched=zb\""),
               {"Megatron-LM", "sched=zb", "1F1B"});
  expect_error(layline("export " + kJob + "--engine layline --to torchtitan --layout \"tp2 sp\""),
               {"torchtitan", "zero1"});
  write_text(path("file"), "");
  expect_error(layline("export " + kJob + "--to megatron --output file"), {"--output"});
  if (geteuid() != 0) {
    shell("mkdir closed && chmod 500 closed");
    expect_error(layline("export " + kJob + "--to megatron --output closed"), {"closed"});
  }
}

TEST_F(Export, SaysThatALayoutIsPredictedNotToFit) {
  const std::string job =
      "--model llama-2-70b --cluster a100-40gb --gpus 8 --global-batch 64 --seq-len 2048 --to megatron --layout ";
  const Result large = layline("export " + job + "\"tp8 mb1 sp\" --output out");
  EXPECT_EQ(large.code, 0) << large.err;
  EXPECT_TRUE(has(large.out, "note: it is predicted not to fit")) << large.out;
  const Result small = layline("export " + kJob + "--to megatron --layout \"tp2 pp2 mb1 sp\" --output out");
  EXPECT_EQ(small.code, 0) << small.err;
  EXPECT_FALSE(has(small.out, "not to fit")) << small.out;
}

TEST_F(Export, ExitsWith3WhenNothingFits) {
  EXPECT_EQ(
      layline("export --model llama-65b --cluster a100-40gb --gpus 8 --global-batch 256 --seq-len 8192 --to megatron")
          .code,
      3);
}

class Import : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write_text(
        path("train.sh"),
        "torchrun --nnodes 8 --nproc_per_node 8 pretrain_gpt.py --num-layers 40 --hidden-size 5120 "
        "--num-attention-heads 40 --ffn-hidden-size 13824 --swiglu --disable-bias-linear --normalization RMSNorm "
        "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 32000 "
        "--max-position-embeddings 2048 --seq-length 2048 --micro-batch-size 1 --global-batch-size 2048 --bf16 "
        "--tensor-model-parallel-size 8 --sequence-parallel --use-distributed-optimizer --lr 3e-4\n");
  }
};

TEST_F(Import, SaysLayoutIgnoredOptionsAndWhatIsNext) {
  const Result read = layline("import train.sh --from megatron --cluster a100-80gb");
  ASSERT_EQ(read.code, 0) << read.err;
  EXPECT_TRUE(has(read.out, "layout  dp8 tp8 pp1 mb1 sp")) << read.out;
  EXPECT_TRUE(has(read.out, "lr 3e-4")) << read.out;
  const size_t next = read.out.find("Next:  layline ");
  ASSERT_NE(next, std::string::npos) << read.out;
  const std::string command = read.out.substr(next + 15);
  const Result explained = shell("{} " + command.substr(0, command.find('\n')));
  EXPECT_EQ(explained.code, 0) << explained.err;
}

TEST_F(Import, IsExplainedBesideThePlannersFirst) {
  const Result explained = layline("explain --import train.sh --cluster a100-80gb");
  ASSERT_EQ(explained.code, 0) << explained.err;
  EXPECT_TRUE(has(explained.out, "The planner's first: ")) << explained.out;
  EXPECT_TRUE(has(explained.out, "less")) << explained.out;
  const size_t next = explained.out.find("Next:  layline export");
  ASSERT_NE(next, std::string::npos) << explained.out;
  const std::string command = explained.out.substr(next + 15);
  EXPECT_TRUE(has(command, "--engine megatron-core")) << command;
  EXPECT_EQ(shell("{} " + command.substr(0, command.find('\n'))).code, 0) << command;
  const json result = json::parse(layline("explain --import train.sh --cluster a100-80gb --json").out);
  EXPECT_EQ(result["layout"], "dp8 tp8 pp1 mb1 sp");
  EXPECT_LT(result["planners_first"]["predicted_step_seconds"], result["predicted_step_seconds"]);
  expect_error(layline("explain --import train.sh"), {"--cluster"});
  expect_error(layline("explain --import train.sh --cluster a100-80gb --layout tp2"), {"--layout"});
  expect_error(layline("explain --from megatron " + kJob + "--layout tp2"), {"--import"});
  expect_error(layline("explain --import train.sh --cluster a100-80gb --gpus 12"), {"12"});
}

TEST_F(Import, SaysWhatIsWrong) {
  expect_error(layline("import nothing.sh"), {"nothing.sh"});
  expect_error(layline("import train.sh --from megatrom"), {"megatrom", "megatron"});
  expect_error(layline("import train.sh --gpus 12"), {"12", "tp 8"});
  expect_error(layline("import train.sh --from torchtitan"), {"train.sh"});
  expect_error(layline("import train.sh --cluster a100-80g"), {"a100-80g", "did you mean"});
  expect_error(layline("import ."), {"folder"});
  write_text(path("empty.sh"), "");
  expect_error(layline("import empty.sh --from megatron"), {"empty"});
  expect_error(layline("import empty.sh"), {"empty"});
  write_text(path("list.sh"), "#!/bin/bash\nls\n");
  expect_error(layline("import list.sh"), {"no command"});
  write_text(path("binary"), std::string("\x7f"
                                         "ELF\0\0",
                                         6));
  expect_error(layline("import binary"), {"no text"});
  shell("head -c 5000000 /dev/zero > huge");
  expect_error(layline("import huge"), {"larger"});
}

}  // namespace
}  // namespace layline::test
