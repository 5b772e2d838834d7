#include "layline/trainer/model/autograd.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <cassert>
#include <memory>

#include "layline/trainer/tally/work.h"

namespace layline::trainer::model {

namespace {

class ClosureNode : public torch::autograd::Node {
 public:
  ClosureNode(BackwardFunction backward, torch::autograd::edge_list next)
      : Node(std::move(next)), backward_(std::move(backward)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    assert(backward_ && "a backward pass runs once");
    const at::NoGradGuard no_grad;
    // Dropped before the next operators of the pass, with all that it captured.
    const BackwardFunction backward = std::exchange(backward_, nullptr);
    return backward(gradients[0].contiguous());
  }
  void release_variables() override { backward_ = nullptr; }
  std::string name() const override { return "LaylineOperator"; }

 private:
  BackwardFunction backward_;
};

// The gradient of `input` (undefined: of nothing) when that of the edge's output is `gradient`.
at::Tensor run_backward(const torch::autograd::Edge& edge, const at::Tensor& gradient, const at::Tensor& input) {
  torch::autograd::edge_list outputs;
  if (input.defined()) outputs.push_back(torch::autograd::impl::gradient_edge(input));
  torch::autograd::variable_list result = torch::autograd::Engine::get_default_engine().execute(
      {edge}, {gradient}, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/!input.defined(), outputs);
  return input.defined() ? result[0] : at::Tensor();
}

}  // namespace

at::Tensor with_backward(at::Tensor output, const std::vector<at::Tensor>& inputs, BackwardFunction backward) {
  if (!at::GradMode::is_enabled()) return output;
  assert(!output.requires_grad());
  torch::autograd::edge_list next;
  for (const at::Tensor& input : inputs) next.push_back(torch::autograd::impl::gradient_edge(input));
  auto node =
      std::shared_ptr<ClosureNode>(new ClosureNode(std::move(backward), std::move(next)), torch::autograd::deleteNode);
  torch::autograd::set_history(output, node);
  return output;
}

at::Tensor checkpoint(const std::function<at::Tensor(const at::Tensor&)>& function, const at::Tensor& input) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = function(input);
  }
  return with_backward(output, {input}, [function, kept = plain(input)](const at::Tensor& gradient) {
    const at::Tensor again = plain(kept).requires_grad_(true);
    at::Tensor output_again;
    {
      const at::AutoGradMode grad(true);
      const tally::WorkScope work(tally::Work::kRecomputation);
      output_again = function(again);
    }
    const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(output_again);
    output_again.reset();
    return std::vector<at::Tensor>{run_backward(edge, gradient, again)};
  });
}

Recorded::Recorded(const at::Tensor& input, const at::Tensor& output) : input_(input) {
  const torch::autograd::Edge edge = torch::autograd::impl::gradient_edge(output);
  node_ = edge.function;
  output_index_ = edge.input_nr;
}

at::Tensor Recorded::backward(const at::Tensor& gradient) {
  auto node = std::static_pointer_cast<torch::autograd::Node>(std::exchange(node_, nullptr));
  assert(node && "a backward pass runs once");
  const at::Tensor input = std::exchange(input_, {});
  const at::Tensor start = gradient.defined() ? gradient : at::ones({}, node->input_metadata(output_index_).options());
  return run_backward({std::move(node), output_index_}, start, input);
}

at::Tensor Saved::get() const {
  if (!rebuild_) return tensor_;
  const tally::WorkScope work(tally::Work::kRecomputation);
  return rebuild_();
}

void WeightGradients::add(std::function<void()> work) {
  if (deferring_) {
    kept_[key_].push_back(std::move(work));
  } else {
    work();
  }
}

void WeightGradients::run(Key key) {
  const auto found = kept_.find(key);
  if (found == kept_.end()) return;
  std::deque<std::function<void()>> work = std::move(found->second);
  kept_.erase(found);
  for (; !work.empty(); work.pop_front()) work.front()();
}

}  // namespace layline::trainer::model
