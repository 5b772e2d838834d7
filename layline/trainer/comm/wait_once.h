// A Pending made of a function that waits.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "layline/trainer/comm/group.h"

namespace layline::trainer::comm {

// Waits when it is destroyed, unless an exception on its way up destroys it: then nobody may come any more.
template <class Wait>
class WaitOnce : public Pending {
 public:
  explicit WaitOnce(Wait wait) : wait_(std::move(wait)), num_exceptions_(std::uncaught_exceptions()) {}
  WaitOnce(const WaitOnce&) = delete;
  WaitOnce& operator=(const WaitOnce&) = delete;
  ~WaitOnce() override {
    if (is_done_ || std::uncaught_exceptions() > num_exceptions_) return;
    try {
      wait_();
    } catch (const std::exception&) {  // the group's next call throws it again
    }
  }
  void wait() override {
    if (std::exchange(is_done_, true)) return;
    wait_();
  }

 private:
  Wait wait_;
  int num_exceptions_;
  bool is_done_ = false;
};

template <class Wait>
std::unique_ptr<Pending> wait_once(Wait wait) {
  return std::make_unique<WaitOnce<Wait>>(std::move(wait));
}

}  // namespace layline::trainer::comm
