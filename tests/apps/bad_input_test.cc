#include <algorithm>
#include <string>
#include <vector>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

class BadInput : public Program {
 protected:
  // The paper's job with one flag's value replaced.
  static std::string job_with(const std::string& flag, const std::string& value) {
    std::string job = kPaperJob;
    const size_t start = job.find(flag + " ") + flag.size() + 1;
    const size_t end = std::min(job.find(' ', start), job.size());
    return job.replace(start, end - start, value);
  }
};

TEST_F(BadInput, NamesTheNearestOfWhatIsUnknown) {
  const struct {
    const char *flag, *value, *nearest;
  } cases[] = {{"--model", "lama-13b", "llama-13b"},
               {"--cluster", "a100-80g", "a100-80gb"},
               {"--engine", "megatron-cor", "megatron-core"}};
  for (const auto& one : cases) {
    expect_error(layline("plan " + job_with(one.flag, one.value)), {one.value, one.nearest});
  }
  expect_error(layline("plan --precision bf61 " + kPaperJob), {"bf61", "bf16"});
  expect_error(layline("plan --calibration nano " + kPaperJob), {"nano"});
  expect_error(layline("plan --seq-length 3 " + kPaperJob), {"--seq-length", "--seq-len"});
  expect_error(layline("plam " + kPaperJob), {"plam", "plan"});
  expect_error(layline("specs show lama-13b"), {"lama-13b", "llama-13b"});
  expect_error(layline("validate x.csv --leave-out swep"), {"swep", "sweep"});
}

TEST_F(BadInput, IsSaidOfMissingAndLeftoverArguments) {
  expect_error(layline(""), {"--help"});
  expect_error(layline("plan"), {"--model"});
  expect_error(layline("plan " + kPaperJob + " leftover"), {"leftover"});
  expect_error(layline("plan " + kPaperJob + " --gpus"), {"--gpus"});
  expect_error(layline("explain " + kPaperJob), {"--layout"});
  expect_error(layline("specs"), {"specs"});
  expect_error(layline("specs show"), {"name"});
  expect_error(layline("validate"), {"runs"});
  expect_error(layline("calibrate x.csv"), {"--"});
}

TEST_F(BadInput, IsSaidOfNumbersOutOfRange) {
  for (const char* flag : {"--gpus", "--global-batch", "--seq-len"}) {
    for (const char* value :
         {"0", "-8", "nan", "inf", "1e400", "99999999999999999999", "9223372036854775807", "8x", "''", "1.5"}) {
      SCOPED_TRACE(std::string(flag) + " " + value);
      expect_error(layline("plan " + job_with(flag, value)), {});
    }
  }
  for (const char* value : {"0", "-1", "nan", "1001", "many"}) {
    expect_error(layline("plan --top " + std::string(value) + " " + kPaperJob), {"--top"});
  }
  for (const char* value : {"0", "-1", "nan", "inf", "1e99", "many"}) {
    expect_error(layline("plan --tokens " + std::string(value) + " " + kPaperJob), {"--tokens", value});
  }
  for (const char* value : {"-1", "nan", "inf", "1e99", "cheap"}) {
    expect_error(layline("plan --tokens 1e9 --dollars-per-gpu-hour " + std::string(value) + " " + kPaperJob),
                 {"--dollars-per-gpu-hour", value});
  }
}

TEST_F(BadInput, IsSaidOfGpusThatAreNotWholeNodes) {
  expect_error(layline("plan " + job_with("--gpus", "12")), {"12", "8"});
  EXPECT_EQ(layline("plan " + job_with("--gpus", "2") + " --json").code, 3);  // part of a node is fine; nothing fits
}

TEST_F(BadInput, IsSaidOfLayoutTexts) {
  for (const char* text : {"tp", "tp0", "tp-1", "tp2 tp2", "tq2", "ckpt=some", "zero9", "sched=2f2b",
                           "tp99999999999999999999", "pp2 split=3", "tp3 pp7", "''", "dp2,tp2"}) {
    SCOPED_TRACE(text);
    expect_error(layline("explain " + kPaperJob + " --layout \"" + text + "\""), {"--layout"});
  }
  expect_error(layline("plan --fix 'tp2 tp4' " + kPaperJob), {"--fix"});
  expect_error(layline("plan --fix 'sq' " + kPaperJob), {"--fix", "sq"});
  expect_error(layline("explain " + kPaperJob + " --layout 'tp1' --against 'tp64'"), {"--against", "64", "40"});
  expect_error(layline("explain " + kPaperJob + " --layout 'tp16'"), {"--layout", "illegal", "16", "40"});
}

TEST_F(BadInput, IsSaidOfRunFilesWithLineAndColumn) {
  write_text(path("runs.csv"), "model,num_gpus\nllama-13b,64\nllama-13b,\"64\nx\n");
  expect_error(layline("validate runs.csv"), {"runs.csv"});
  expect_error(layline("validate missing.csv"), {"missing.csv"});
  expect_error(layline("validate ."), {});
  write_text(path("empty.csv"), "");
  expect_error(layline("validate empty.csv"), {"empty.csv"});
  write_text(path("binary.csv"), std::string("a,b\n\0\xff\xfe,1\n", 11));
  expect_error(layline("validate binary.csv"), {"binary.csv"});
}

TEST_F(BadInput, NamesTheRowAndTheColumnOfABadNumber) {
  std::string csv = read_text(source("data/published/hagemann2024_a100.csv"));
  const size_t header_end = csv.find('\n');
  std::string header = csv.substr(0, header_end), rest;
  // The same header, and one row of nonsense.
  rest = "\n";
  for (const char c : header) {
    if (c == ',') rest += "nonsense,";
  }
  write_text(path("runs.csv"), header + rest + "nonsense\n");
  expect_error(layline("validate runs.csv"), {"runs.csv:2:", "nonsense"});
}

TEST_F(BadInput, IsSaidOfSpecFiles) {
  write_text(path("model.json"), "{\"num_layers\": 4,, }");
  expect_error(layline("plan " + job_with("--model", "./model.json")), {"model.json"});
  expect_error(layline("specs check model.json"), {"model.json"});
  expect_error(layline("specs check missing.json"), {"missing.json"});
  expect_error(layline("plan " + job_with("--model", "./missing.json")), {"missing.json"});
  write_text(path("none.json"), "{}");
  expect_error(layline("specs check none.json"), {"none.json"});
}

TEST_F(BadInput, LeavesOldFilesAsTheyWereWhenANewOneCannotBeWritten) {
  const std::string runs = source("data/published/hagemann2024_a100.csv");
  expect_error(layline("validate missing.csv --predictions old.csv"), {"missing.csv"});
  write_text(path("old.csv"), "old\n");
  expect_error(layline("validate " + runs + " missing.csv --predictions old.csv"), {"missing.csv"});
  EXPECT_EQ(read_text(path("old.csv")), "old\n");
  for (const char* target : {"no/such/folder/out.csv", "/proc/out.csv", "."}) {
    const Result result = layline("validate " + runs + " --predictions " + target);
    EXPECT_TRUE(result.code == 1 || result.code == 2) << target << result.code;
    EXPECT_TRUE(has(result.err, target)) << result.err;
    EXPECT_EQ(result.out, "") << target;
  }
}

}  // namespace
}  // namespace layline::test
