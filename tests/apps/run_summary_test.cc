#include "apps/layline_train/run_summary.h"

#include <gtest/gtest.h>

namespace layline::app {
namespace {

trainer::metrics::StepRecord record_of(int64_t step, double loss) {
  trainer::metrics::StepRecord record;
  record.step = step;
  record.steps = 4;
  record.loss = loss;
  record.tokens = 1000 * step;
  record.step_seconds = 0.5;
  record.tokens_per_second = 2000;
  record.peak_memory_bytes_by_stage = {int64_t{1} << 30, int64_t{1} << 29};
  record.seconds_by_stage = {{{"compute", 0.4}, {"pipeline_wait", 0.1}}, {{"compute", 0.3}, {"pipeline_wait", 0.2}}};
  return record;
}

TEST(RunSummary, SaysWhatWasDone) {
  RunSummary summary("m.jsonl", "saved");
  EXPECT_EQ(summary.text(), "");
  summary.add(record_of(3, 5));
  trainer::metrics::StepRecord last = record_of(4, 4.5);
  last.mfu = 0.457;
  last.validation_loss = 4.25;
  last.checkpoint_seconds = 0.25;
  summary.add(last);
  EXPECT_EQ(summary.text(),
            "done, step 4 of 4: 2 steps, 2,000 tokens in 1.25 s\n"
            "  loss       5.0000 at first, 4.5000 now; valid 4.2500 at best, at step 4\n"
            "  speed      2,000 tok/s in the middle, MFU 45.7 % at the end\n"
            "  time       compute 70 %, pipeline wait 30 %\n"
            "  memory     1 GiB, 512 MiB by stage\n"
            "  metrics    m.jsonl: layline watch m.jsonl\n");
}

TEST(RunSummary, SaysHowToGoOnWithARunThatWasStopped) {
  RunSummary summary("", "saved");
  summary.add(record_of(2, 5));
  const std::string text = summary.text();
  EXPECT_EQ(text.rfind("stopped after step 2 of 4: 1 step, 1,000 tokens", 0), 0U) << text;
  EXPECT_NE(text.find("  resume     the same command with --set checkpoint.resume=true (saved)\n"), std::string::npos);
  EXPECT_EQ(text.find("metrics"), std::string::npos);
}

}  // namespace
}  // namespace layline::app
