// A group that moves nothing and writes down what it is asked.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layline/trainer/comm/group.h"

namespace layline::trainer::optimizer {

class RecordingGroup : public comm::Group {
 public:
  RecordingGroup(std::string name, int64_t size, std::vector<std::string>& events)
      : name_(std::move(name)), size_(size), events_(events) {}

  int64_t rank() const override { return 0; }
  int64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  void all_reduce(at::Tensor tensor) override { record("all_reduce", tensor); }
  void all_reduce_max(at::Tensor) override {}  // debug builds compare orders with it
  std::unique_ptr<comm::Pending> all_reduce_async(at::Tensor tensor) override {
    return start("all_reduce_async", tensor);
  }
  void reduce_scatter(at::Tensor input, at::Tensor) override { record("reduce_scatter", input); }
  std::unique_ptr<comm::Pending> reduce_scatter_async(at::Tensor input, at::Tensor) override {
    return start("reduce_scatter_async", input);
  }
  void all_gather(at::Tensor, at::Tensor output) override { record("all_gather", output); }
  std::unique_ptr<comm::Pending> all_gather_async(at::Tensor, at::Tensor output) override {
    return start("all_gather_async", output);
  }
  void broadcast(at::Tensor tensor, int64_t) override { record("broadcast", tensor); }
  void barrier() override {}
  void send(at::Tensor, int64_t, int) override {}
  std::unique_ptr<comm::Pending> receive(at::Tensor, int64_t, int) override { return nullptr; }
  void flush_sends() override {}

 private:
  class RecordedPending : public comm::Pending {
   public:
    RecordedPending(std::string what, std::vector<std::string>& events) : what_(std::move(what)), events_(events) {}
    void wait() override { events_.push_back("waited for " + what_); }

   private:
    std::string what_;
    std::vector<std::string>& events_;
  };

  std::string record(const std::string& operation, const at::Tensor& tensor) {
    events_.push_back(name_ + " " + operation + " " + std::to_string(tensor.numel()));
    return events_.back();
  }
  std::unique_ptr<comm::Pending> start(const std::string& operation, const at::Tensor& tensor) {
    return std::make_unique<RecordedPending>(record(operation, tensor), events_);
  }

  std::string name_;
  int64_t size_;
  std::vector<std::string>& events_;
};

}  // namespace layline::trainer::optimizer
