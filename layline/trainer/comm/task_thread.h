// Runs tasks one after the other on a thread of its own, which starts with the first task.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace layline::trainer::comm {

class TaskThread {
 public:
  TaskThread() = default;
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread();  // when all tasks are done

  // The task may not throw.
  void add(std::function<void()> task);
  // Returns when all tasks that were added are done.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // the first one may be running
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace layline::trainer::comm
