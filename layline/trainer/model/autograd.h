// The few ways in which the trainer's operators take part in autograd.
//
// Operators compute their output without autograd and hang a closure on it:
//
//   at::Tensor y = …;
//   return with_backward(y, {x}, [x = plain(x), &weight](const at::Tensor& dy) { …; return {dx}; });
//
// The closure owns what it needs (plain: else it would keep the graph before it alive), runs once, and is dropped
// right after. Weights are no autograd leaves: closures add to Parameter::main_grad themselves, in fp32, which is also
// what lets their part of the backward pass be put off (WeightGradients).
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace layline::trainer::model {

// The same elements without any history, not even as a view: what closures may keep.
inline at::Tensor plain(const at::Tensor& tensor) { return tensor.variable_data(); }

using BackwardFunction = std::function<std::vector<at::Tensor>(const at::Tensor& gradient)>;

// The output, with `backward` called once with its gradient (contiguous) and returning the gradients of `inputs`, in
// their order. Without grad mode just the output. With no inputs the chain of the backward pass ends here.
at::Tensor with_backward(at::Tensor output, const std::vector<at::Tensor>& inputs, BackwardFunction backward);

// Runs function(input) without keeping anything but the input, and again when the backward pass comes (activation
// checkpointing, Chen et al. 2016). The function may be called several times and has no side effects but those of its
// own operators' backward closures.
at::Tensor checkpoint(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input);

// A forward pass whose backward pass is still to come. Holds the graph, not the output.
class Recorded {
 public:
  Recorded() = default;
  // input: a leaf that requires grad, or undefined where there is none; output: with history.
  Recorded(const at::Tensor& input, const at::Tensor& output);
  // The input's gradient, undefined where there was no input. `gradient` undefined: one, of a scalar. Frees the graph.
  at::Tensor backward(const at::Tensor& gradient);

 private:
  at::Tensor input_;
  std::shared_ptr<void> node_;  // torch::autograd::Node
  uint32_t output_index_ = 0;
};

// Weight gradients that are computed later than the input gradients (zero-bubble schedules), by the key of the pass
// that left them.
class WeightGradients {
 public:
  using Key = std::pair<int64_t, int64_t>;  // chunk, micro-batch

  // From here on work is kept under this key; until stop().
  void defer(Key key) { key_ = key, deferring_ = true; }
  void stop() { deferring_ = false; }
  // Now, or later.
  void add(std::function<void()> work);
  // What was kept under the key, in order.
  void run(Key key);

 private:
  bool deferring_ = false;
  Key key_;
  std::map<Key, std::deque<std::function<void()>>> kept_;
};

// A tensor that a backward pass needs: kept, or rebuilt from others that are kept anyway.
class Saved {
 public:
  explicit Saved(const at::Tensor& tensor) : tensor_(plain(tensor)) {}
  explicit Saved(std::function<at::Tensor()> rebuild) : rebuild_(std::move(rebuild)) {}
  at::Tensor get() const;

 private:
  at::Tensor tensor_;
  std::function<at::Tensor()> rebuild_;
};

// An operator's output together with how the next one is to save it.
struct Activation {
  at::Tensor tensor;
  Saved saved;
};

}  // namespace layline::trainer::model
