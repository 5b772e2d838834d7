#include "apps/layline_train/step_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace layline::app {
namespace {

trainer::metrics::StepRecord record(int64_t step) {
  trainer::metrics::StepRecord record;
  record.step = step;
  record.steps = 200;
  record.loss = 5.54517;
  record.grad_norm = 1.2345678;
  record.learning_rate = 6e-4;
  record.tokens_per_second = 24310.4;
  record.peak_memory_bytes = 450971566;
  record.eta_seconds = 41;
  return record;
}

TEST(StepLine, SaysWhatMatters) {
  EXPECT_EQ(step_line(record(12), {.width = 120}),
            "step  12/200  loss 5.5452   norm 1.23      lr 6.0e-04     24,310 tok/s  MFU      –   0.42 GiB  ETA 41 s");
  EXPECT_EQ(step_line(record(12), {.width = 100}),
            "step  12/200  loss 5.5452   norm 1.23      lr 6.0e-04     24,310 tok/s   0.42 GiB  ETA 41 s");
  EXPECT_NE(step_line(record(12), {.width = 120, .unicode = false}).find("MFU      -  "), std::string::npos);
}

TEST(StepLine, LinesAreAlignedAndFit) {
  for (const int width : {84, 90, 100, 120}) {
    const base::TextStyle style{.width = width, .unicode = false};
    for (const bool knows_mfu : {false, true}) {
      auto early = record(1), late = record(200);
      late.loss = 10.0312;
      late.grad_norm = 123456;
      late.tokens_per_second = 1234567;
      late.peak_memory_bytes = int64_t{64} << 30;
      late.eta_seconds = 86000;
      if (knows_mfu) late.mfu = early.mfu = 0.4567;
      const std::string first = step_line(early, style), last = step_line(late, style);
      for (const char* label : {"loss", "norm", "lr", "tok/s", "MFU", "GiB", "ETA"}) {
        EXPECT_EQ(first.find(label), last.find(label)) << label << "\n" << first << "\n" << last;
      }
      EXPECT_LE(last.size(), static_cast<size_t>(width)) << last;
      EXPECT_EQ(last.find("MFU") != std::string::npos, knows_mfu || width == 120) << last;
    }
  }
}

TEST(StepLine, ShowsALossThatIsNoNumber) {
  auto broken = record(3);
  broken.loss = NAN;
  EXPECT_NE(step_line(broken, {}).find("loss nan"), std::string::npos);
}

TEST(StepLine, ShowsTheValidationLossWhereThereIsOne) {
  auto measured = record(10);
  EXPECT_EQ(step_line(measured, {}).find("valid"), std::string::npos);
  measured.validation_loss = 5.5;
  EXPECT_NE(step_line(measured, {}).find("valid 5.5000"), std::string::npos);
}

}  // namespace
}  // namespace layline::app
