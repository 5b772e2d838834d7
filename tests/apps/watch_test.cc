// `layline watch`, where the output is no terminal and where it is one.
#include <nlohmann/json.hpp>

#include "tests/apps/program.h"

namespace layline::test {
namespace {

class WatchCommand : public Program {
 protected:
  static std::string row(int step, double loss, const std::string& more = "") {
    return "{\"step\": " + std::to_string(step) + ", \"steps\": 40, \"loss\": " + std::to_string(loss) +
           ", \"grad_norm\": 1.5, \"learning_rate\": 3e-4, \"tokens\": " + std::to_string(1000 * step) +
           ", \"step_seconds\": 0.5, \"tokens_per_second\": 2000, \"mfu\": 0.457, \"peak_memory_bytes\": 2147483648, "
           "\"peak_memory_bytes_by_stage\": [2147483648, 1073741824], \"layout\": \"dp1 tp1 pp2 mb1\"" +
           more + "}\n";
  }
  static std::string rows(int first, int last) {
    std::string text;
    for (int step = first; step <= last; ++step) text += row(step, 5 - 0.1 * step);
    return text;
  }
};

TEST_F(WatchCommand, ShowsHowItIsNow) {
  write_text(path("m.jsonl"), rows(1, 20) + row(20, 3.25, ", \"validation_loss\": 3.5, \"checkpoint_seconds\": 0.25") +
                                  "{\"step\": 21, \"los");
  const Result result = layline("watch m.jsonl");
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* part :
       {"m.jsonl · dp1 tp1 pp2 mb1\n", "step 20 of 40 · 20.0 K tokens · lr 3.0e-04 · about 10 s left",
        "loss 3.2500 · valid 3.5000 (best 3.5000 at step 20) · 2,000 tok/s · MFU 45.7 %", "peak memory by stage  2 GiB",
        "1 checkpoint, the last at step 20", "tokens a second"}) {
    EXPECT_TRUE(has(result.out, part)) << "want " << part << " in\n" << result.out;
  }
  EXPECT_FALSE(has(result.out, "\x1b"));
  const nlohmann::json json = nlohmann::json::parse(layline("watch m.jsonl --json").out);
  EXPECT_EQ(json["num_steps"], 20);
  EXPECT_EQ(json["last"]["loss"], 3.25);
  EXPECT_EQ(json["is_done"], false);
}

TEST_F(WatchCommand, ANewRunInTheSameFileBegins) {
  write_text(path("m.jsonl"), rows(1, 20) + rows(1, 3));
  EXPECT_TRUE(has(layline("watch m.jsonl").out, "step 3 of 40"));
  write_text(path("m.jsonl"), "{\"step\": 1, \"loss\": null}\n");
  EXPECT_TRUE(has(layline("watch m.jsonl").out, "loss not a number"));
}

TEST_F(WatchCommand, NothingToShowIsAnError) {
  expect_error(layline("watch none.jsonl"), {"none.jsonl: there is no such file"});
  write_text(path("m.jsonl"), "no metrics\n");
  expect_error(layline("watch m.jsonl"), {"m.jsonl: has no row of metrics yet"});
}

// On a terminal it waits for the file, draws what comes, and ends with the run.
TEST_F(WatchCommand, FollowsARunToItsEnd) {
  write_text(path("first"), rows(1, 10));
  write_text(path("rest"), rows(11, 40));
  const Result result = shell(
      "script -qec '{} watch m.jsonl' /dev/null > out.txt < /dev/null & sleep 0.3; cat first > m.jsonl; "
      "for i in $(seq 200); do grep -q 'step 10 of 40' out.txt && break; sleep 0.02; done; cat rest >> m.jsonl; "
      "wait $!");
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string out = read_text(path("out.txt"));
  for (const char* part :
       {"waiting for the first step in m.jsonl", "step 10 of 40", "step 40 of 40", "done", "\x1b[?25h"}) {
    EXPECT_TRUE(has(out, part)) << "want " << part << " in\n" << out;
  }
}

TEST_F(WatchCommand, CtrlCShowsTheCursorAgain) {
  write_text(path("m.jsonl"), rows(1, 10));
  const Result result = shell(
      "script -qec 'timeout -s INT 0.7 {} watch m.jsonl; echo code $?' /dev/null > out.txt < /dev/null; cat out.txt");
  EXPECT_TRUE(has(result.out, "\x1b[?25h")) << result.out;
  EXPECT_TRUE(has(result.out, "step 10 of 40")) << result.out;
}

}  // namespace
}  // namespace layline::test
