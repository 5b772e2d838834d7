#include "layline/trainer/config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trainer/config/runs.h"

namespace layline::trainer::config::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(RunConfig, HasTheAgreedDefaults) {
  const RunConfig config = parse(kSmallest);
  EXPECT_EQ(config.where, "run.json");
  EXPECT_EQ(config.model.name, "llama-tiny");
  EXPECT_EQ(config.load, "");
  EXPECT_EQ(config.layout, "auto");
  EXPECT_EQ(config.cluster, "");
  EXPECT_EQ(config.sequence_length, 512);
  EXPECT_EQ(config.global_batch, 32);
  EXPECT_EQ(config.steps, 200);
  EXPECT_EQ(config.precision, Precision::kBf16);
  EXPECT_EQ(config.device, Device::kCpu);
  EXPECT_EQ(config.seed, 1);
  ASSERT_EQ(config.data.train.size(), 1u);
  EXPECT_EQ(config.data.train[0].path, "corpus");
  EXPECT_EQ(config.data.train[0].weight, 1);
  EXPECT_TRUE(config.data.valid.empty());
  EXPECT_EQ(config.data.tokenizer, "bytes");
  EXPECT_EQ(config.data.order, DataOrder::kShuffled);
  EXPECT_EQ(config.data.valid_every_steps, 0);
  EXPECT_EQ(config.optimizer.learning_rate, 3e-4);
  EXPECT_EQ(config.optimizer.warmup_steps, 0);
  EXPECT_EQ(config.optimizer.decay, Decay::kCosine);
  EXPECT_EQ(config.optimizer.min_learning_rate, 0);
  EXPECT_EQ(config.optimizer.beta1, 0.9);
  EXPECT_EQ(config.optimizer.beta2, 0.95);
  EXPECT_EQ(config.optimizer.epsilon, 1e-8);
  EXPECT_EQ(config.optimizer.weight_decay, 0.1);
  EXPECT_EQ(config.optimizer.clip, 1);
  EXPECT_EQ(config.checkpoint.directory, "");
  EXPECT_EQ(config.checkpoint.every_steps, 0);
  EXPECT_EQ(config.checkpoint.keep, 2);
  EXPECT_EQ(config.checkpoint.resume, Resume::kNo);
  EXPECT_EQ(config.checkpoint.on_error, OnSaveError::kStop);
  EXPECT_EQ(config.metrics, "");
  EXPECT_FALSE(config.memory_limit_bytes);
  EXPECT_EQ(config.timeout_seconds, 300);
  EXPECT_FALSE(config.stop_after_seconds);
  EXPECT_EQ(config.tokens_per_step(), 32 * 512);
}

TEST(RunConfig, ReadsEveryKey) {
  const RunConfig config = parse(kFullest);
  EXPECT_EQ(config.load, "weights");
  EXPECT_EQ(config.layout, "dp2 tp2 mb4 sp");
  EXPECT_EQ(config.cluster, "h200-141gb");
  EXPECT_EQ(config.precision, Precision::kFp64);
  EXPECT_EQ(config.device, Device::kCuda);
  EXPECT_EQ(config.seed, 7);
  ASSERT_EQ(config.data.train.size(), 2u);
  EXPECT_EQ(config.data.train[1].path, "b");
  EXPECT_EQ(config.data.train[1].weight, 0.25);
  ASSERT_EQ(config.data.valid.size(), 1u);
  EXPECT_EQ(config.data.valid[0].path, "held-out");
  EXPECT_EQ(config.data.tokenizer, "bytes");
  EXPECT_EQ(config.data.order, DataOrder::kSequential);
  EXPECT_EQ(config.data.valid_every_steps, 5);
  EXPECT_EQ(config.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(config.optimizer.warmup_steps, 20);
  EXPECT_EQ(config.optimizer.min_learning_rate, 1e-4);
  EXPECT_EQ(config.optimizer.beta1, 0.8);
  EXPECT_EQ(config.optimizer.beta2, 0.99);
  EXPECT_EQ(config.optimizer.epsilon, 1e-6);
  EXPECT_EQ(config.optimizer.weight_decay, 0);
  EXPECT_EQ(config.optimizer.clip, 0);
  EXPECT_EQ(config.checkpoint.directory, "saved");
  EXPECT_EQ(config.checkpoint.every_steps, 10);
  EXPECT_EQ(config.checkpoint.keep, 3);
  EXPECT_EQ(config.checkpoint.resume, Resume::kPrevious);
  EXPECT_EQ(config.checkpoint.on_error, OnSaveError::kContinue);
  EXPECT_EQ(config.metrics, "metrics.jsonl");
  EXPECT_EQ(config.memory_limit_bytes, 2000000000);
  EXPECT_EQ(config.timeout_seconds, 60.5);
  EXPECT_EQ(config.stop_after_seconds, 3600);
}

TEST(RunConfig, WhatItWritesIsReadBackAsTheSameRun) {
  for (const char* text : {kSmallest, kFullest}) {
    const std::string written = to_json(parse(text));
    EXPECT_EQ(to_json(parse(written)), written);
  }
}

// So that a key that was forgotten in to_json cannot make two different runs look the same.
TEST(RunConfig, EveryKeyChangesWhatItWrites) {
  const nlohmann::json fullest = nlohmann::json::parse(kFullest), smallest = nlohmann::json::parse(kSmallest);
  const std::string plain = to_json(parse(kSmallest));
  for (const auto& [key, value] : fullest.items()) {
    if (smallest.contains(key) && smallest[key] == value) continue;
    nlohmann::json changed = smallest;
    if (!value.is_object()) {
      changed[key] = value;
      EXPECT_NE(to_json(parse(changed.dump())), plain) << key;
      continue;
    }
    for (const auto& [inner, inner_value] : value.items()) {
      if (inner == "decay") continue;  // has one value only
      nlohmann::json inner_changed = smallest;
      inner_changed[key][inner] = inner_value;
      if (inner == "valid_every_steps") inner_changed[key]["valid"] = "held-out";
      if (key == "checkpoint") inner_changed[key]["directory"] = "saved";
      if (inner == "tokenizer") inner_changed[key][inner] = "spiece.model";
      EXPECT_NE(to_json(parse(inner_changed.dump())), plain) << key << "." << inner;
    }
  }
}

TEST(RunConfig, NullIsTheSameAsNoKey) {
  const RunConfig config = parse(kSmallest, {"load=null", "metrics=null", "checkpoint=null", "memory_limit_bytes=null",
                                             "stop_after_seconds=null", "data.valid=null", "optimizer.clip=null"});
  EXPECT_EQ(to_json(config), to_json(parse(kSmallest)));
}

TEST(RunConfig, TheModelMayBeInsideIt) {
  const std::string own = R"("model": )" + spec::to_json(spec::get_model("llama-tiny"));
  EXPECT_EQ(parse(with(kSmallest, R"("model": "llama-tiny")", own)).model.hidden, 384);
  const std::string config = R"("model": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 256, "rms_norm_eps": 1e-4})";
  const RunConfig run = parse(with(kSmallest, R"("model": "llama-tiny")", config));
  EXPECT_EQ(run.model.hidden, 64);
  EXPECT_EQ(run.model.norm_epsilon, 1e-4);
  EXPECT_EQ(run.model.name, "run");
}

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
};

TEST(RunConfig, MistakesAreSaidWithTheirPlace) {
  const Mistake table[] = {
      {R"("steps": 200)", R"("stepps": 200)", R"($.stepps: unknown key (did you mean "steps"?))"},
      {R"("steps": 200,)", "", "$.steps: is missing"},
      {R"("steps": 200)", R"("steps": 200, "steps": 3)", "$.steps: the key is there twice"},
      {R"("steps": 200)", R"("steps": 0)", "$.steps: found 0, want a whole number from 1"},
      {R"("steps": 200)", R"("steps": 1.5)", "$.steps: found 1.5, want a whole number"},
      {R"("steps": 200)", R"("steps": "200")", R"($.steps: found "200", want a whole number)"},
      {R"("steps": 200)", R"("steps": true)", "$.steps: found true"},
      {R"("steps": 200)", R"("steps": 200, "seed": -1)", "$.seed: found -1"},
      {R"("steps": 200)", R"("steps": 200, "seed": 1e30)", "$.seed: found 1e+30"},
      {R"("steps": 200)", R"("steps": 200, "seed": 9007199254740993)", "$.seed: found 9007199254740993"},
      {"\"global_batch\": 32,\n  \"steps\": 200", R"("global_batch": 4000000000, "steps": 1000000000)",
       "$.steps: found 1000000000, of 2.048e+12 tokens each; want at most 1e+18 tokens in all"},
      {R"("steps": 200)", R"("steps": 200, "layout": 3)", "$.layout: found 3, want a text"},
      {R"("steps": 200)", R"("steps": 200, "layout": "")", R"($.layout: found "", want a text that is not empty)"},
      {R"("steps": 200)", R"("steps": 200, "precision": "bf61")", R"(did you mean "bf16"?)"},
      {R"("steps": 200)", R"("steps": 200, "precision": "fp16")", "want one of bf16, fp32, fp64"},
      {R"("steps": 200)", R"("steps": 200, "device": "gpu")", "want one of cpu, cuda"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": [])", "$.optimizer: found [], want an object"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"lr": 1})", "$.optimizer.lr: unknown key"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"betas": [0.9]})", "$.optimizer.betas: want two numbers"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"betas": [0.9, 1]})", "$.optimizer.betas: want two numbers"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"betas": 0.9})", "want a list of numbers"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"betas": [0.9, "x"]})", R"(found "x", want a number)"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"decay": "cosin"})", R"(did you mean "cosine"?)"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"learning_rate": -1})", "$.optimizer.learning_rate: found -1"},
      {R"("steps": 200)", R"("steps": 200, "optimizer": {"min_learning_rate": 1})", "want at most learning_rate"},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"keep": 0})", "$.checkpoint.keep: found 0"},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"resume": true})", "directory is not"},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"every_steps": 2})", "directory is not"},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"directory": "d", "resume": "yes"})",
       "false or \"previous\""},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"directory": "d", "resume": 1})", "found 1, want a text"},
      {R"("steps": 200)", R"("steps": 200, "checkpoint": {"on_error": "go"})", "want one of stop, continue"},
      {R"("steps": 200)", R"("steps": 200, "timeout_seconds": 0)", "$.timeout_seconds: found 0"},
      {R"("steps": 200)", R"("steps": 200, "timeout_seconds": "5 min")", "want a number"},
      {R"("steps": 200)", R"("steps": 200, "memory_limit_bytes": "2GiB")", "want a whole number"},
      {R"("steps": 200)", R"("steps": 200, "memory_limit_bytes": 0)", "$.memory_limit_bytes: found 0"},
      {R"("steps": 200)", R"("steps": 200, "metrics": ["a"])", "$.metrics: found [\"a\"], want a text"},
      {R"("global_batch": 32)", R"("global_batch": -32)", "$.global_batch: found -32"},
      {R"("sequence_length": 512)", R"("sequence_length": NaN)", "no NaN"},
      {R"("model": "llama-tiny")", R"("model": "lama-tiny")", R"($.model: no model "lama-tiny" (did you mean)"},
      {R"("model": "llama-tiny")", R"("model": "no/config.json")", "$.model: no/config.json: cannot read"},
      {R"("model": "llama-tiny")", R"("model": 3)", "$.model: found 3, want a text"},
      {R"("model": "llama-tiny")", R"("model": {"model_type": "llama", "hidden_size": 1000000000000,
        "intermediate_size": 8, "num_attention_heads": 1, "num_hidden_layers": 1, "vocab_size": 8})",
       "run.json: $.model: hidden is 1000000000000"},
      {R"("model": "llama-tiny")", R"("model": {"name": "x"})", "$.model."},
      {R"("model": "llama-tiny",)", "", "$.model: is missing"},
      {R"({"train": "corpus"})", R"({"train": ""})", R"($.data.train: found "")"},
      {R"({"train": "corpus"})", R"({"train": []})", "$.data.train: found [], want at least one source"},
      {R"({"train": "corpus"})", R"({"train": ["a"]})", R"($.data.train[0]: found "a", want an object)"},
      {R"({"train": "corpus"})", R"({"train": [{"path": "a", "wait": 1}]})", "$.data.train[0].wait: unknown key"},
      {R"({"train": "corpus"})", R"({"train": [{"path": "a", "weight": 0}]})", "$.data.train[0].weight: found 0"},
      {R"({"train": "corpus"})", R"({"train": [{"weight": 1}]})", "$.data.train[0].path: is missing"},
      {R"({"train": "corpus"})", R"({"train": "a", "order": "random"})", "want one of shuffled, sequential"},
      {R"({"train": "corpus"})", R"({"train": "a", "valid_every_steps": 5})", "but $.data.valid is not"},
      {R"({"train": "corpus"})", R"({})", "$.data.train: is missing"},
      {R"({"train": "corpus"})", "null", "$.data: is missing"},
      {R"({"train": "corpus"})", R"("corpus")", "$.data: found \"corpus\", want an object"},
  };
  for (const Mistake& mistake : table) {
    const std::string text = with(kSmallest, mistake.from, mistake.to);
    const std::string message = error_of([&] { parse(text); });
    EXPECT_THAT(message, HasSubstr(mistake.message)) << text;
    EXPECT_THAT(message, StartsWith("run.json: ")) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << text;
  }
}

TEST(RunConfig, FilesThatAreNoObjectAreRefused) {
  for (const char* text : {"", "[]", "3", "null", "{", "{}x", "// a run\n{}"}) {
    EXPECT_THAT(error_of([&] { parse(text); }), StartsWith("run.json: ")) << text;
    EXPECT_NE(error_of([&] { parse(text, {"steps=3"}); }), "") << text;
  }
}

TEST(Overrides, SetKeysBeforeTheFileIsRead) {
  const RunConfig config =
      parse(kSmallest, {"optimizer.learning_rate=1e-5", "layout=dp2 tp2 mb4", "steps=3", "data.train=other",
                        "model=llama-3.1-8b", "checkpoint.resume=previous", "checkpoint.directory=\"8\"",
                        R"(data.valid=[{"path": "v=1"}])", "optimizer.betas=[0.5, 0.6]"});
  EXPECT_EQ(config.optimizer.learning_rate, 1e-5);
  EXPECT_EQ(config.layout, "dp2 tp2 mb4");
  EXPECT_EQ(config.steps, 3);
  EXPECT_EQ(config.data.train[0].path, "other");
  EXPECT_EQ(config.model.name, "llama-3.1-8b");
  EXPECT_EQ(config.checkpoint.resume, Resume::kPrevious);
  EXPECT_EQ(config.checkpoint.directory, "8");
  EXPECT_EQ(config.data.valid[0].path, "v=1");
  EXPECT_EQ(config.optimizer.beta2, 0.6);
}

TEST(Overrides, TheLastOneCounts) { EXPECT_EQ(parse(kSmallest, {"steps=3", "steps=4"}).steps, 4); }

TEST(Overrides, MayGiveAllThatAFileLacks) {
  EXPECT_EQ(to_json(parse("{}", {"model=llama-tiny", "sequence_length=512", "global_batch=32", "steps=200",
                                 "data.train=corpus"})),
            to_json(parse(kSmallest)));
}

TEST(Overrides, MistakesAreThoseOfTheFlag) {
  const struct {
    const char* text;
    const char* message;
  } table[] = {
      {"steps", "--set steps: want KEY=VALUE"},
      {"=3", "--set =3: want KEY=VALUE"},
      {"steps.=3", "--set steps.=3: the key has an empty part"},
      {".steps=3", "the key has an empty part"},
      {"a..b=3", "the key has an empty part"},
      {"steps=three", "--set steps=three: $.steps: found \"three\", want a whole number"},
      {"steps=", "--set steps=: $.steps: found \"\", want a whole number"},
      {"optimizer.lr=3", "--set optimizer.lr=3: $.optimizer.lr: unknown key"},
      {"stepps=3", R"(--set stepps=3: $.stepps: unknown key (did you mean "steps"?))"},
      {"steps.x=3", "--set steps.x=3: steps is no object"},
      {"model.hidden=3", "--set model.hidden=3: model is no object"},
      {"data={\"train\": ", "--set data={\"train\": "},
      {"data={\"train\": \"x\", \"train\": \"y\"}", "the key is there twice"},
      {"data={\"trian\": \"x\"}", "--set data={\"trian\": \"x\"}: $.data.trian: unknown key"},
      {"model=lama-tiny", R"(--set model=lama-tiny: $.model: no model "lama-tiny" (did you mean)"},
      {"seed=1e400", "--set seed=1e400: "},
      {"a.b=c", "--set a.b=c: $.a: unknown key"},
  };
  for (const auto& row : table) {
    EXPECT_THAT(error_of([&] { parse(kSmallest, {row.text}); }), HasSubstr(row.message)) << row.text;
  }
}

TEST(Overrides, AreNotBlamedForTheFilesMistakes) {
  const std::string text = with(kSmallest, R"("steps": 200)", R"("steps": 200, "seed": "x")");
  EXPECT_THAT(error_of([&] { parse(text, {"steps=3", "see=1"}); }), StartsWith("run.json: $.seed: "));
  const std::string number = with(kSmallest, R"("steps": 200)", R"("steps": 200, "optimizerr": {"clip": 1})");
  EXPECT_THAT(error_of([&] { parse(number, {"optimizerr.clip=1"}); }), StartsWith("run.json: $.optimizerr: "));
}

// Texts with pieces changed, lost, or put in: they parse or are an InputError, never anything else.
RC_GTEST_PROP(RunConfig, DamagedTextsParseOrAreAnInputError, ()) {
  std::string text = kFullest;
  const int num_changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < num_changes; ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    const std::string piece = *rc::gen::element<std::string>("", "0", "-", "1e9", "9", "\"", "{", "}", "[", "]", ",",
                                                             ":", "null", "true", "e400", ".5");
    text.replace(at, *rc::gen::inRange<size_t>(0, 3), piece);
  }
  try {
    const std::string written = to_json(parse(text));
    RC_ASSERT(to_json(parse(written)) == written);
  } catch (const base::InputError& error) {
    RC_ASSERT(std::string_view(error.what()).starts_with("run.json: "));
  }
}

}  // namespace
}  // namespace layline::trainer::config::test
