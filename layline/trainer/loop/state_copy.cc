#include "layline/trainer/loop/state_copy.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "layline/trainer/loop/state_slices.h"
#include "layline/trainer/model/mutation.h"

namespace layline::trainer::loop {

namespace {

using checkpoint::kNumKinds;
using optimizer::OptimizerState;

struct Part {
  int64_t offset = 0, length = 0;  // elements of the state
};

// Of what replicas hold alike each saves a share.
Part share_of(int64_t length, const TrainingJob& job, int64_t dp_rank) {
  const int64_t dp = job.layout.dp;
  if (job.layout.zero != 0 || dp == 1 || model::mutated(model::Mutation::kSaveReplicas)) return {0, length};
  const int64_t first = length * dp_rank / dp;
  return {first, length * (dp_rank + 1) / dp - first};
}

}  // namespace

StateCopy::StateCopy(RankTrainer& trainer, const TrainingJob& job,
                     const std::vector<checkpoint::SavedParameter>& parameters) {
  std::unordered_map<std::string, int64_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) indices[parameters[i].name] = static_cast<int64_t>(i);
  // Whatever tp is, it divides both.
  const int64_t num_panels = std::gcd(job.model.num_heads, job.model.ffn_hidden);
  trainer.for_each_state([&](const OptimizerState& state) {
    if (!state.parameter->is_counted) return;
    const Part part = share_of(state.master.numel(), job, trainer.dp_rank());
    const std::array<const at::Tensor*, kNumKinds> tensors = {&state.master, &state.exp_avg, &state.exp_avg_sq};
    const auto bytes = static_cast<int64_t>(state.master.element_size());
    for (const StateSlice& slice : slices_of(*state.parameter, state.offset + part.offset, part.length, num_panels)) {
      checkpoint::ShardSlice& saved = slices_.emplace_back();
      saved.parameter_index = indices.at(state.parameter->name);
      saved.parameter = parameters[static_cast<size_t>(saved.parameter_index)];
      saved.box = slice.box;
      for (const at::Tensor* tensor : tensors) {
        const auto* first = static_cast<const std::byte*>(tensor->const_data_ptr());
        sources_.push_back({first + (part.offset + slice.offset) * bytes, nullptr, slice.box.num_rows,
                            slice.box.num_columns * bytes, slice.row_stride * bytes});
        size_bytes_ += slice.box.size() * bytes;
      }
    }
  });
  memory_ = std::make_unique<std::byte[]>(static_cast<size_t>(size_bytes_));
  std::byte* to = memory_.get();
  for (size_t i = 0; i < sources_.size(); ++i) {
    sources_[i].to = to;
    const int64_t size = sources_[i].num_rows * sources_[i].row_bytes;
    slices_[i / kNumKinds].contents[i % kNumKinds] = {to, static_cast<size_t>(size)};
    to += size;
  }
}

StateCopy::~StateCopy() = default;

void StateCopy::take() {
  at::parallel_for(0, static_cast<int64_t>(sources_.size()), 1, [this](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Source& source = sources_[static_cast<size_t>(i)];
      for (int64_t row = 0; row < source.num_rows; ++row) {
        std::memcpy(source.to + row * source.row_bytes, source.from + row * source.stride_bytes,
                    static_cast<size_t>(source.row_bytes));
      }
    }
  });
}

}  // namespace layline::trainer::loop
