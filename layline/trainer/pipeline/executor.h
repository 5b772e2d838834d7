// Runs a schedule's instruction list for one pipeline rank: the very list that the planner simulates.
//
//   Executor executor(schedule, pp_rank, {&chunk_0, &chunk_1}, pp_group);
//   executor.run();                                     // every rank of the group, the same schedule
//
// Messages are asynchronous: receives are posted ahead of the computation before the one that needs them, sends leave
// while the next instruction runs. What is sent is kept until the next message goes the same way, by when it has left
// as a rule, or until an output's gradient comes back: so the bytes that a rank holds do not depend on when a message
// leaves. What a backward pass needs of an output is its graph only.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "layline/schedule/schedule.h"
#include "layline/trainer/comm/group.h"
#include "layline/trainer/model/autograd.h"

namespace layline::trainer::pipeline {

// One chunk (virtual stage) of a rank, as the executor sees it.
class Chunk {
 public:
  virtual ~Chunk() = default;
  // input: from the virtual stage before; undefined for the first. Returns the output for the next one, or, of the
  // last, a scalar loss. In grad mode the output has a history that ends in the input.
  virtual at::Tensor forward(int64_t micro_batch, const at::Tensor& input) = 0;
};

// What virtual stages send each other.
struct MessageShape {
  std::vector<int64_t> sizes;
  at::TensorOptions options;
};

class Executor {
 public:
  // chunks: of this rank, chunk 0 first; pp: the ranks of the pipeline in order, and weight_gradients what the chunks'
  // operators put off. All outlive the executor.
  Executor(const schedule::Schedule& schedule, int64_t pp_rank, std::vector<Chunk*> chunks, comm::Group& pp,
           MessageShape message, model::WeightGradients& weight_gradients);

  // One step. Returns the sum of the losses of this rank's micro-batches: 0 but on the last stage.
  double run();
  // The forward passes of the same schedule only, without gradients.
  double run_forward();

 private:
  using Key = model::WeightGradients::Key;  // chunk, micro-batch
  struct Incoming {
    at::Tensor tensor;
    std::unique_ptr<comm::Pending> pending;
  };

  double run_list(const std::vector<schedule::Instruction>& list);
  void execute(const schedule::Instruction& step);
  void post_receives(const std::vector<schedule::Instruction>& list, size_t current);
  void receive(const schedule::Instruction& step);
  void send(const schedule::Instruction& step);
  void forward(const schedule::Instruction& step);
  void backward(const schedule::Instruction& step, bool defers_weights);
  at::Tensor take(std::map<Key, Incoming>& incoming, Key key);
  bool is_first(int64_t chunk) const { return chunk * pp_.size() + pp_rank_ == 0; }
  bool is_last(int64_t chunk) const {
    return schedule_.virtual_stage(pp_rank_, chunk) + 1 == schedule_.num_virtual_stages();
  }

  schedule::Schedule schedule_;
  int64_t pp_rank_;
  std::vector<Chunk*> chunks_;
  comm::Group& pp_;
  MessageShape message_;
  model::WeightGradients& weight_gradients_;

  std::map<Key, Incoming> inputs_, gradients_;
  std::map<Key, at::Tensor> outputs_, input_gradients_;  // to be sent
  struct Sent {
    Key key;
    at::Tensor tensor;
  };
  std::array<Sent, 2> last_sent_;  // by channel
  std::map<Key, model::Recorded> recorded_;
  size_t next_receive_ = 0;  // of the list: receives before it are posted
  at::Tensor loss_;
};

}  // namespace layline::trainer::pipeline
