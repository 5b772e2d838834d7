// What a rank saves of the optimizer's state, copied so that training can go on while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "layline/trainer/checkpoint/shard_file.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop {

class StateCopy {
 public:
  // Every element of the model is saved by one rank: of what several hold, by the one that counts it in norms; of what
  // data-parallel replicas hold alike (ZeRO-0), each takes its share. parameters: of the whole model.
  StateCopy(RankTrainer& trainer, const TrainingJob& job, const std::vector<checkpoint::SavedParameter>& parameters);
  ~StateCopy();

  // Copies the state as it is now. Nobody may be reading slices().
  void take();

  // The contents are those of the last take().
  const std::vector<checkpoint::ShardSlice>& slices() const { return slices_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  // Rows to copy.
  struct Source {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    int64_t num_rows = 0, row_bytes = 0, stride_bytes = 0;
  };

  std::vector<checkpoint::ShardSlice> slices_;
  std::vector<Source> sources_;
  std::unique_ptr<std::byte[]> memory_;
  int64_t size_bytes_ = 0;
};

}  // namespace layline::trainer::loop
