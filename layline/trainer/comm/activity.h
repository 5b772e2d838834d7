// What a rank is doing at the moment, for the failure board: written by its groups, read by its watch. One a rank.
//
//   Activity activity;                     // outlives the groups and the watch
//   …                                      // a group: activity.begin(label, …); … activity.end();
//   activity.now()                         // the watch's thread
//
// Costs a few stores a call.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace layline::trainer::comm {

class Activity {
 public:
  // One wait for other ranks.
  struct Wait {
    const char* label = nullptr;  // "all_reduce of dp"; nullptr: none, the rank computes
    int64_t index = 0;            // of waits of this rank, from 1: the same index later is the same wait
    int64_t group = 0;            // the same on all ranks of a group, and no other group's
    int64_t call = -1;            // which collective of the group; -1: a message
    int64_t num_elements = 0;
    int dtype = 0;  // c10::ScalarType
  };

  // Keeps a label as long as this object lives.
  const char* keep(const std::string& label);

  // By the rank's main thread.
  void begin(const char* label, int64_t group, int64_t call, int64_t num_elements, int dtype);
  void end() { label_.store(nullptr, std::memory_order_release); }

  // From any thread. Parts of two waits that follow each other within a moment may be mixed: trust what two looks show.
  Wait now() const;

 private:
  std::atomic<const char*> label_{nullptr};
  std::atomic<int64_t> index_{0};
  std::atomic<int64_t> group_{0};
  std::atomic<int64_t> call_{0};
  std::atomic<int64_t> num_elements_{0};
  std::atomic<int> dtype_{0};
  std::mutex mutex_;
  std::set<std::string> labels_;
};

}  // namespace layline::trainer::comm
