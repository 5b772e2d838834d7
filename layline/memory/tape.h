// Bytes that come and go, and the most that were there at one time.
#pragma once

#include <algorithm>

namespace layline::memory {

class Tape {
 public:
  explicit Tape(double live_bytes = 0) : live_(live_bytes), peak_(live_bytes) {}

  void take(double bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void free(double bytes) { live_ -= bytes; }
  // For a moment.
  void touch(double bytes) { peak_ = std::max(peak_, live_ + bytes); }
  // `bytes` are replaced by as many, which are there before the old ones go.
  void replace(double bytes) { touch(bytes); }

  double live() const { return live_; }
  double peak() const { return peak_; }

 private:
  double live_, peak_;
};

}  // namespace layline::memory
