// What a step leaves behind: nothing, so that a run that got through its first step gets through all.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/loop/memory_counter.h"
#include "layline/trainer/loop/rank_trainer.h"
#include "tests/trainer/loop/tiny.h"

namespace layline::trainer::loop::test {
namespace {

std::vector<data::MicroBatch> micro_batches(const TrainingJob& job) {
  std::vector<data::MicroBatch> batches;
  for (int64_t m = 0; m < job.num_micro_batches(); ++m) {
    const at::Tensor tokens = at::randint(job.model.vocab, {job.layout.mb, job.sequence_length + 1}, at::kLong);
    batches.push_back({tokens.narrow(1, 0, job.sequence_length), tokens.narrow(1, 1, job.sequence_length)});
  }
  return batches;
}

struct Bytes {
  int64_t peak = 0, left = 0;
};

// Of each of `steps` steps on one rank.
std::vector<Bytes> bytes_of_steps(const std::string& layout_text, int64_t steps) {
  MemoryCounter& memory = MemoryCounter::install();
  std::vector<Bytes> bytes;
  comm::run_as_threads(1, std::chrono::seconds(10), [&](comm::GroupFactory& factory) {
    const TrainingJob job = tiny_job(layout::parse_layout(layout_text), 8);
    RankTrainer trainer(job, factory);
    trainer.initialize();
    for (int64_t step = 0; step < steps; ++step) {
      memory.reset_peak();
      trainer.step(micro_batches(job));
      bytes.push_back({memory.peak_bytes(), memory.live_bytes()});
    }
  });
  return bytes;
}

TEST(Memory, OfTheSecondGlobalBatchIsNoHigherThanOfTheFirst) {
  for (const char* layout : {"dp1 tp1 pp1 mb2", "dp1 tp1 pp1 mb2 ckpt=selective", "dp1 tp1 pp1 mb2 ckpt=full"}) {
    const std::vector<Bytes> steps = bytes_of_steps(layout, 4);
    for (size_t i = 1; i < steps.size(); ++i) {
      EXPECT_LE(steps[i].peak, steps[0].peak) << layout << " step " << i + 1;
      EXPECT_LE(steps[i].left, steps[0].left) << layout << " step " << i + 1;
    }
  }
}

TEST(Memory, BeyondTheLimitIsRefusedWithTheSizesAndCostsNothing) {
  MemoryCounter& memory = MemoryCounter::install();
  const int64_t before = memory.live_bytes();
  memory.set_limit(before + 1000);
  try {
    at::empty({2000}, at::kByte);
    ADD_FAILURE() << "no error";
  } catch (const base::RunError& error) {
    EXPECT_NE(std::string(error.what()).find("out of memory"), std::string::npos) << error.what();
  }
  memory.set_limit(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(memory.live_bytes(), before);
}

}  // namespace
}  // namespace layline::trainer::loop::test
