#include "layline/trainer/comm/gloo_collectives.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "layline/trainer/comm/reduce.h"

namespace layline::trainer::comm {

namespace {

// Elements [start, start + length).
struct Range {
  int64_t start = 0;
  int64_t length = 0;
};

// The part of rank when num elements are divided among size ranks; the last ones may be shorter or empty.
Range part_of(int64_t num, int64_t size, int64_t rank) {
  const int64_t length = (num + size - 1) / size;
  const int64_t start = std::min(num, rank * length);
  return {start, std::min(length, num - start)};
}

std::vector<Range> segments_of(Range part, int64_t element_bytes) {
  const int64_t length = kSegmentBytes / element_bytes;
  std::vector<Range> segments;
  for (int64_t start = 0; start < part.length; start += length) {
    segments.push_back({part.start + start, std::min(length, part.length - start)});
  }
  return segments;
}

// The messages of one collective as this rank sees them.
class Messages {
 public:
  explicit Messages(const Exchange& exchange) : exchange_(exchange), deadline_(exchange.mesh.deadline()) {}

  int64_t size() const { return static_cast<int64_t>(exchange_.world_ranks.size()); }
  int64_t rank() const { return exchange_.rank; }
  // The others, beginning behind this one, so that not all send to the same rank first.
  std::vector<int64_t> peers() const {
    std::vector<int64_t> peers;
    for (int64_t i = 1; i < size(); ++i) peers.push_back((rank() + i) % size());
    return peers;
  }

  // step: 0 or 1.
  void send(const at::Tensor& flat, Range range, int64_t peer, int step) {
    if (range.length == 0) return;
    sent_.push_back(exchange_.mesh.send(slice(flat, range), exchange_.world_ranks[peer], exchange_.tag + step));
  }
  GlooMesh::Transfer receive(const at::Tensor& flat, Range range, int64_t peer, int step) {
    return exchange_.mesh.receive(slice(flat, range), exchange_.world_ranks[peer], exchange_.tag + step);
  }
  void receive_later(const at::Tensor& flat, Range range, int64_t peer, int step) {
    if (range.length > 0) received_.push_back(receive(flat, range, peer, step));
  }
  void wait(const GlooMesh::Transfer& transfer) { exchange_.mesh.wait(transfer, deadline_); }
  void finish() {
    for (const GlooMesh::Transfer& transfer : received_) wait(transfer);
    for (const GlooMesh::Transfer& transfer : sent_) wait(transfer);
  }

 private:
  static at::Tensor slice(const at::Tensor& flat, Range range) { return flat.narrow(0, range.start, range.length); }

  const Exchange& exchange_;
  const GlooMesh::Deadline deadline_;
  std::vector<GlooMesh::Transfer> sent_;
  std::vector<GlooMesh::Transfer> received_;
};

// Receives one segment after the other from all peers, a few ahead of the sums.
class SegmentReducer {
 public:
  // own: where this rank's part is; out: where the sums go, shifted by out_shift elements. All flat, and of one dtype.
  SegmentReducer(Messages& messages, Reduction reduction, at::Tensor scratch, at::Tensor own, at::Tensor out,
                 int64_t out_shift)
      : messages_(messages),
        reduction_(reduction),
        scratch_(std::move(scratch)),
        own_(std::move(own)),
        out_(std::move(out)),
        out_shift_(out_shift) {}

  template <class Done>
  void run(const std::vector<Range>& segments, Done&& done) {
    size_t num_posted = 0;
    for (const Range& segment : segments) {
      for (; num_posted < segments.size() && posted_.size() < kSegmentWindow; ++num_posted) {
        post(segments[num_posted], static_cast<int64_t>(num_posted) % kSegmentWindow);
      }
      reduce(segment);
      done(segment);
    }
  }

 private:
  struct Posted {
    at::Tensor scratch;  // [size - 1, length], in the order of peers
    std::vector<GlooMesh::Transfer> transfers;
  };

  // The first segment is the longest.
  void post(Range segment, int64_t slot) {
    Posted posted;
    const int64_t num_parts = messages_.size() - 1;
    if (slot_length_ == 0) slot_length_ = num_parts * segment.length;
    posted.scratch = scratch_.narrow(0, slot * slot_length_, num_parts * segment.length).view({num_parts, -1});
    const std::vector<int64_t> peers = messages_.peers();
    for (size_t i = 0; i < peers.size(); ++i) {
      const at::Tensor row = posted.scratch.select(0, static_cast<int64_t>(i));
      posted.transfers.push_back(messages_.receive(row, {0, segment.length}, peers[i], 0));
    }
    posted_.push_back(std::move(posted));
  }

  void reduce(Range segment) {
    const int64_t element_bytes = own_.element_size();
    const Posted& posted = posted_.front();
    for (const GlooMesh::Transfer& transfer : posted.transfers) messages_.wait(transfer);
    std::vector<const void*> parts(static_cast<size_t>(messages_.size()));
    parts[messages_.rank()] = static_cast<const char*>(own_.const_data_ptr()) + segment.start * element_bytes;
    const std::vector<int64_t> peers = messages_.peers();
    for (size_t i = 0; i < peers.size(); ++i) {
      parts[peers[i]] = static_cast<const char*>(posted.scratch.const_data_ptr()) + i * segment.length * element_bytes;
    }
    char* out = static_cast<char*>(out_.mutable_data_ptr()) + (segment.start - out_shift_) * element_bytes;
    reduce_parts(reduction_, own_.scalar_type(), parts, out, segment.length);
    posted_.pop_front();
  }

  Messages& messages_;
  const Reduction reduction_;
  const at::Tensor scratch_;
  const at::Tensor own_;
  const at::Tensor out_;
  const int64_t out_shift_;
  std::deque<Posted> posted_;
  int64_t slot_length_ = 0;
};

void send_parts(Messages& messages, const at::Tensor& flat) {
  for (const int64_t peer : messages.peers()) {
    for (const Range& segment : segments_of(part_of(flat.numel(), messages.size(), peer), flat.element_size())) {
      messages.send(flat, segment, peer, 0);
    }
  }
}

void reduce_scatter(Messages& messages, const at::Tensor& scratch, const at::Tensor& input, const at::Tensor& output) {
  const Range own = part_of(input.numel(), messages.size(), messages.rank());
  send_parts(messages, input);
  SegmentReducer reducer(messages, Reduction::kSum, scratch, input, output, own.start);
  reducer.run(segments_of(own, input.element_size()), [](Range) {});
  messages.finish();
}

// Own segments go to all as soon as they are summed. What comes back may overwrite a part that was sent away: its owner
// had it before.
void all_reduce_long(Messages& messages, const at::Tensor& scratch, const at::Tensor& flat, Reduction reduction) {
  const int64_t element_bytes = flat.element_size();
  send_parts(messages, flat);
  for (const int64_t peer : messages.peers()) {
    for (const Range& segment : segments_of(part_of(flat.numel(), messages.size(), peer), element_bytes)) {
      messages.receive_later(flat, segment, peer, 1);
    }
  }
  const Range own = part_of(flat.numel(), messages.size(), messages.rank());
  SegmentReducer reducer(messages, reduction, scratch, flat, flat, 0);
  reducer.run(segments_of(own, element_bytes), [&](Range segment) {
    for (const int64_t peer : messages.peers()) messages.send(flat, segment, peer, 1);
  });
  messages.finish();
}

void all_reduce_direct(Messages& messages, const at::Tensor& scratch, const at::Tensor& flat, Reduction reduction) {
  const Range all{0, flat.numel()};
  const at::Tensor parts_of_ranks = scratch.view({messages.size(), -1});
  for (const int64_t peer : messages.peers()) {
    messages.receive_later(parts_of_ranks.select(0, peer), all, peer, 0);
    messages.send(flat, all, peer, 0);
  }
  messages.finish();
  std::vector<const void*> parts;
  for (int64_t rank = 0; rank < messages.size(); ++rank) {
    parts.push_back(rank == messages.rank() ? flat.const_data_ptr() : parts_of_ranks.select(0, rank).const_data_ptr());
  }
  reduce_parts(reduction, flat.scalar_type(), parts, flat.mutable_data_ptr(), flat.numel());
}

void all_reduce(Messages& messages, const at::Tensor& scratch, const at::Tensor& flat, Reduction reduction) {
  if (flat.numel() == 0) return messages.finish();
  const bool is_short = flat.numel() * flat.element_size() <= kDirectBytes;
  is_short ? all_reduce_direct(messages, scratch, flat, reduction)
           : all_reduce_long(messages, scratch, flat, reduction);
}

void all_gather(Messages& messages, const at::Tensor& input, const at::Tensor& output) {
  const int64_t num_each = input.numel();
  for (const int64_t peer : messages.peers()) {
    messages.receive_later(output, {peer * num_each, num_each}, peer, 0);
    messages.send(input, {0, num_each}, peer, 0);
  }
  const at::Tensor own = output.narrow(0, messages.rank() * num_each, num_each);
  if (own.data_ptr() != input.data_ptr()) std::memcpy(own.mutable_data_ptr(), input.const_data_ptr(), input.nbytes());
  messages.finish();
}

void broadcast(Messages& messages, const at::Tensor& flat, int64_t root) {
  const Range all{0, flat.numel()};
  if (messages.rank() != root) {
    messages.receive_later(flat, all, root, 0);
  } else {
    for (const int64_t peer : messages.peers()) messages.send(flat, all, peer, 0);
  }
  messages.finish();
}

void barrier(Messages& messages) {
  const at::Tensor byte = at::zeros({1}, at::kByte);
  all_gather(messages, byte, at::empty({messages.size()}, at::kByte));
}

}  // namespace

void do_collective(const Exchange& exchange, const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  Messages messages(exchange);
  const auto flat = [](const at::Tensor& tensor) { return tensor.view(-1); };
  const auto scratch = [&] {
    return exchange.scratch.take(scratch_bytes(call, messages.size()), call.input.device())
        .view(call.input.scalar_type());
  };
  switch (call.operation) {
    case Operation::kAllReduce:
      return all_reduce(messages, scratch(), flat(call.input), Reduction::kSum);
    case Operation::kAllReduceMax:
      return all_reduce(messages, scratch(), flat(call.input), Reduction::kMax);
    case Operation::kReduceScatter:
      return reduce_scatter(messages, scratch(), flat(call.input), flat(call.output));
    case Operation::kAllGather:
      return all_gather(messages, flat(call.input), flat(call.output));
    case Operation::kBroadcast:
      return broadcast(messages, flat(call.input), call.root);
    case Operation::kBarrier:
      return barrier(messages);
    default:
      return;
  }
}

}  // namespace layline::trainer::comm
