#include "layline/trainer/comm/activity.h"

namespace layline::trainer::comm {

const char* Activity::keep(const std::string& label) {
  const std::lock_guard lock(mutex_);
  return labels_.insert(label).first->c_str();
}

void Activity::begin(const char* label, int64_t group, int64_t call, int64_t num_elements, int dtype) {
  group_.store(group, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  num_elements_.store(num_elements, std::memory_order_relaxed);
  dtype_.store(dtype, std::memory_order_relaxed);
  index_.fetch_add(1, std::memory_order_relaxed);
  label_.store(label, std::memory_order_release);
}

Activity::Wait Activity::now() const {
  Wait wait;
  wait.label = label_.load(std::memory_order_acquire);
  wait.index = index_.load(std::memory_order_relaxed);
  wait.group = group_.load(std::memory_order_relaxed);
  wait.call = call_.load(std::memory_order_relaxed);
  wait.num_elements = num_elements_.load(std::memory_order_relaxed);
  wait.dtype = dtype_.load(std::memory_order_relaxed);
  return wait;
}

}  // namespace layline::trainer::comm
