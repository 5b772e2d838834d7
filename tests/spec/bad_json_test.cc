// What a wrong spec file is told. Every row of the tables is one mistake and what the message must say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "tests/spec/texts.h"

namespace layline::spec::test {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
};

void expect_messages(SpecKind kind, const std::string& text, const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    const std::string bad = with(text, mistake.from, mistake.to);
    const std::string message = error_of([&] { parse(kind, bad, "specs/x.json"); });
    EXPECT_THAT(message, HasSubstr(mistake.message)) << mistake.from << " -> " << mistake.to;
    EXPECT_THAT(message, testing::StartsWith("specs/x.json: "));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(BadJson, OfAGpuIsToldFileAndPathAndWhatIsWanted) {
  const std::string gpu = shipped(SpecKind::kGpu, "a100-80gb");
  expect_messages(
      SpecKind::kGpu, gpu,
      {
          {"\"num_sms\": 108", "\"num_sms\": 108.5", "$.num_sms: found 108.5, want a whole number from 1"},
          {"\"num_sms\": 108", "\"num_sms\": 0", "$.num_sms: found 0, want"},
          {"\"num_sms\": 108", "\"num_sms\": -4", "$.num_sms: found -4, want"},
          {"\"num_sms\": 108", "\"num_sms\": \"108\"", "$.num_sms: found \"108\", want a whole number"},
          {"\"num_sms\": 108", "\"num_sms\": null", "$.num_sms: found null, want"},
          {"\"num_sms\": 108", "\"num_sms\": true", "$.num_sms: found true, want"},
          {"\"num_sms\": 108", "\"num_sms\": 1e18", "$.num_sms: found 1e+18, want"},
          {"\"num_sms\": 108", "\"num_sms\": 99999999999999999999999", "$.num_sms: found 9.99"},
          {"\"num_sms\": 108", "\"num_sm\": 108", "$.num_sm: unknown key (did you mean \"num_sms\"?)"},
          {"\"num_sms\": 108,", "", "$.num_sms: is missing"},
          {"\"num_sms\": 108", "\"num_sms\": 108, \"num_sms\": 108", "$.num_sms: the key is there twice"},
          {"\"num_sms\": 108", "\"num_sms\": 108, \"zebra\": 1", "$.zebra: unknown key"},
          {"\"num_sms\": 108", "\"num_sms\": NaN", "$.num_sms: no valid JSON (which has no NaN and no Infinity)"},
          {"\"num_sms\": 108", "\"num_sms\": -Infinity", "no valid JSON"},
          {"\"num_sms\": 108", "\"num_sms\": 0x10", "no valid JSON"},
          {"\"num_sms\": 108", "\"num_sms\": 1e999", "$.num_sms: number overflow"},
          {"\"num_sms\": 108", "\"num_sms\": [108]", "$.num_sms: found [108], want"},
          {"\"memory_bytes\": 84986665370", "\"memory_bytes\": 0", "$.memory_bytes: found 0, want a number from 1"},
          {"\"memory_bytes\": 84986665370", "\"memory_bytes\": -1", "$.memory_bytes: found -1, want"},
          {"\"memory_bytes\": 84986665370", "\"memory_bytes\": 1e300", "$.memory_bytes: found 1e+300, want"},
          {"\"name\": \"a100-80gb\"", "\"name\": \"\"", "$.name: found \"\", want a text that is not empty"},
          {"\"name\": \"a100-80gb\"", "\"name\": 5", "$.name: found 5, want a text"},
          {"\"aliases\": [", "\"aliases\": [3, ", "$.aliases: found 3 in the list, want a text"},
          {"\"aliases\": [", "\"aliases\": [\"a100\", ", "$.aliases: \"a100\" is in the list twice"},
          {"\"*\": ", "\"num_sms\": ", "$.sources: no source for \""},
          {"\"*\": ", "\"*\": 7, \"x\": ", "$.sources.*: found 7, want a text"},
      });
}

TEST(BadJson, OfAClusterIsToldWhatIsWrongWithItsGpu) {
  const std::string cluster = shipped(SpecKind::kCluster, "a100-80gb");
  expect_messages(
      SpecKind::kCluster, cluster,
      {
          {"\"gpu\": \"a100-80gb\"", "\"gpu\": \"a100-80bg\"", "$.gpu: no GPU \"a100-80bg\" (did you mean"},
          {"\"gpu\": \"a100-80gb\"", "\"gpu\": \"/dev/zero\"", "want the name of a shipped GPU"},
          {"\"gpu\": \"a100-80gb\"", "\"gpu\": {\"name\": \"x\", \"num_sm\": 3}", "$.gpu.num_sm: unknown key"},
          {"\"gpu\": \"a100-80gb\",", "", "$.gpu: is missing"},
          {"\"gpus_per_node\": 8", "\"gpus_per_node\": 0", "$.gpus_per_node: found 0, want"},
          {"\"intra_latency_seconds\": 3e-6", "\"intra_latency_seconds\": -3e-6",
           "$.intra_latency_seconds: found -3e-06, want"},
      });
}

TEST(BadJson, OfAModelIsToldWhichSizesDoNotFit) {
  const std::string model = shipped(SpecKind::kModel, "llama-2-70b");
  expect_messages(SpecKind::kModel, model,
                  {
                      {"\"hidden\": 8192", "\"hiden\": 8192", "$.hiden: unknown key (did you mean \"hidden\"?)"},
                      {"\"hidden\": 8192", "\"hidden\": 0", "$.hidden: found 0, want"},
                      {"\"num_kv_heads\": 8", "\"num_kv_heads\": 7", "num_kv_heads 7 does not divide num_heads 64"},
                      {"\"num_experts\": 0", "\"num_experts\": 8", "mixtures of experts are not supported"},
                      {"\"mlp\": \"swiglu\"", "\"mlp\": \"swigul\"", "(did you mean \"swiglu\"?)"},
                      {"\"mlp\": \"swiglu\"", "\"mlp\": \"relu\"", "$.mlp: found \"relu\", want one of swiglu, gelu"},
                      {"\"vocab\": 32000", "\"vocab\": 1e12", "vocab is 1000000000000, want"},
                      {"\"num_layers\": 80", "\"num_layers\": 16000000", "more than 2^50 parameters"},
                      {"\"ffn_hidden\": 28672", "\"ffn_hidden\": 16000000, \"hidden\": 1", "the key is there twice"},
                      {"\"head_size\": 128", "\"head_size\": 10000000", "a matrix has more than 2^40 elements"},
                      {"\"tied_embeddings\": false", "\"tied_embeddings\": 0", "found 0, want true or false"},
                  });
}

TEST(BadJson, OfLearnedPositionsIsToldThatTheyNeedALength) {
  expect_messages(SpecKind::kModel, shipped(SpecKind::kModel, "llama-13b"),
                  {{"\"position\": \"rope\"", "\"position\": \"learned\"", "max_sequence_length is 0"}});
}

TEST(BadJson, OfARotaryEmbeddingIsToldWhatIsWrong) {
  const std::string model = shipped(SpecKind::kModel, "llama-3.1-8b");
  expect_messages(SpecKind::kModel, model,
                  {
                      {"\"theta\": 500000", "\"theat\": 500000", "$.rope.theat: unknown key (did you mean \"theta\"?)"},
                      {"\"scaling\": \"llama3\"", "\"scaling\": \"lama3\"", "did you mean \"llama3\"?"},
                      {"\"scaling\": \"llama3\"", "\"scaling\": \"linear\"", "$.rope.high_freq_factor: unknown key"},
                      {"\"factor\": 8,", "", "$.rope.factor: is missing"},
                      {"\"factor\": 8,", "\"factor\": 8, \"other_scaling\": \"yarn\",", "is there beside scaling"},
                      {"\"position\": \"rope\"", "\"position\": \"alibi\"", "$.rope: is there, but position"},
                      {"\"norm_epsilon\": 1e-5", "\"norm_epsilon\": 2", "$.norm_epsilon: found 2, want"},
                  });
}

TEST(BadJson, OfAnEngineIsToldTheChoices) {
  const std::string engine = shipped(SpecKind::kEngine, "megatron-core");
  expect_messages(
      SpecKind::kEngine, engine,
      {
          {"\"schedules\": [", "\"schedule\": [", "$.schedule: unknown key (did you mean \"schedules\"?)"},
          {"\"1f1b\"", "\"1f2b\"", "$.schedules: found \"1f2b\", want one of 1f1b, interleaved, gpipe, zb"},
          {"\"even\"", "\"balanced\"", "is in the list twice"},
          {"\"even\",", "", "$.default_split: even is not among what the engine has"},
          {"\"has_virtual_stages\": true", "\"has_virtual_stages\": 1", "want true or false"},
          {"\"has_virtual_stages\"", "\"bucket_alignment_bytes\": 0, \"has_virtual_stages\"",
           "$.bucket_alignment_bytes: found 0, want at least 1"},
          {"\"reduction\": \"reduce-scatter\"", "\"reduction\": \"scatter\"", "want one of all-reduce"},
          {"\"gradient_bytes\": \"", "\"gradient_byte\": \"", "$.sources.gradient_byte: is the source of a key"},
      });
}

std::string calibration_text() {
  const CoefficientInfo& first = coefficient_table().front();
  Calibration calibration;
  calibration.name = "x";
  calibration.engine = "layline";
  calibration.gpu = "a100-80gb";
  calibration.values[std::string(first.name)] = first.upper;
  calibration.left_out.push_back({"a sweep", 3, 0.1, 0.05});
  return to_json(calibration);
}

TEST(BadJson, OfACalibrationIsToldTheCoefficientAndItsBounds) {
  const CoefficientInfo& first = coefficient_table().front();
  const std::string name(first.name);
  const std::string entry = fmt::format("\"{}\": ", name);
  expect_messages(SpecKind::kCalibration, calibration_text(),
                  {
                      {entry.c_str(), "\"no_such_coefficient_here\": ", "no coefficient \"no_such_coefficient_here\""},
                      {entry.c_str(), fmt::format("\"{}_\": ", name).c_str(), "did you mean"},
                      {entry.c_str(), fmt::format("\"{}\": 1e9, \"{}\": ", name, name).c_str(), "there twice"},
                      {entry.c_str(), fmt::format("{}1e20, \"x\": ", entry).c_str(), name.c_str()},
                      {"\"num_runs\": 3", "\"num_runs\": -3", "$.left_out[0].num_runs: found -3, want"},
                      {"\"num_runs\": 3", "\"num_run\": 3", "$.left_out[0].num_run: unknown key"},
                      {"\"relative_error_bar\"", "\"relative_error_bars\"", "did you mean \"relative_error_bar\"?"},
                  });
}

TEST(BadJson, WholeFilesThatAreNoObject) {
  struct Case {
    std::string text;
    const char* message;
  };
  const std::string gpu = shipped(SpecKind::kGpu, "h100-80gb");
  const std::vector<Case> cases = {
      {"", "no valid JSON"},
      {"   \n", "no valid JSON"},
      {"[]", "$: found [], want an object"},
      {"7", "$: found 7, want an object"},
      {"null", "$: found null, want an object"},
      {gpu + "x", "no valid JSON"},
      {gpu + "{}", "no valid JSON"},
      {gpu.substr(0, gpu.size() / 2), "no valid JSON after $."},
      {std::string(1000000, '['), "more than 32 levels of nesting"},
      {"{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}", "more than 32 levels of nesting"},
      {"{\"name\": \"\xff\xfe\"}", "no valid JSON"},
      {std::string("{\"na\0me\": 1}", 12), "no valid JSON"},
      {"{\"name\": 'x'}", "no valid JSON"},
      {"{\"name\": \"x\",}", "no valid JSON"},
      {"// hello\n{}", "no valid JSON"},
  };
  for (const Case& c : cases) {
    const std::string message = error_of([&] { parse_gpu(c.text, "x.json"); });
    EXPECT_THAT(message, HasSubstr(c.message)) << c.text.substr(0, 40);
    EXPECT_LT(message.size(), 400u);
  }
}

TEST(BadJson, ByteOrderMarksAndWindowsLineEndsAreFine) {
  std::string text = shipped(SpecKind::kGpu, "h100-80gb");
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) text.replace(at, 1, "\r\n");
  EXPECT_EQ(parse_gpu("\xEF\xBB\xBF" + text, "x").num_sms, get_gpu("h100-80gb").num_sms);
}

TEST(BadJson, ManyMegabytesOfAValueAreShownInAFewLetters) {
  const std::string text = "{\"name\": [\"" + std::string(5 << 20, 'x') + "\"]}";
  EXPECT_LT(error_of([&] { parse_gpu(text, "x.json"); }).size(), 300u);
}

TEST(BadJson, WholeNumbersMayBeWrittenWithAnExponent) {
  const std::string text = with(shipped(SpecKind::kModel, "llama-13b"), "\"vocab\": 128000", "\"vocab\": 128e3");
  EXPECT_EQ(parse_model(text, "x").vocab, 128000);
}

// Shipped texts with bytes changed, lost, or doubled: they parse or are an InputError, never anything else.
RC_GTEST_PROP(BadJson, DamagedTextsParseOrAreAnInputError, ()) {
  const auto& specs = shipped_specs();
  const ShippedSpec& spec = specs[*rc::gen::inRange<size_t>(0, specs.size())];
  std::string text(spec.json);
  const int num_changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < num_changes; ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    const std::string piece = *rc::gen::element<std::string>("", "0", "-", "1e9", "9", "\"", "{", "}", "[", "]", ",",
                                                             ":", "null", "e400", ".5");
    text.replace(at, *rc::gen::inRange<size_t>(0, 3), piece);
  }
  try {
    parse(spec.kind, text, "x.json");
  } catch (const base::InputError&) {
  }
}

}  // namespace
}  // namespace layline::spec::test
