// Whom the bytes of tensors belong to, and when in a step they are taken: said by the code that takes them, read by a
// counting allocator.
//
//   const OwnerScope owner(Owner::kOptimizer);          // tensors made from here on, in this thread
//   const MomentScope moment({Phase::kForward, chunk, micro_batch});
//
// Both are of the calling thread, since an allocator is called without any argument that could carry them. Scopes nest;
// setting one costs a store.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace layline::trainer::tally {

enum class Owner : uint8_t {
  kNone,  // activations and what is needed for a moment: when it is freed tells which
  kWeights,
  kGradients,
  kOptimizer,
  kLogits,         // the head's working set, with its gradients
  kCommunication,  // scratch of collectives
  kBuffers,        // what is made once: position tables; and the step's tokens
};

// The planner's names. What has no owner is activations, with what is needed for a moment and what is sent.
inline constexpr std::array<std::string_view, 7> kOwnerNames = {
    "activations", "weights", "gradients", "optimizer", "logits", "communication", "buffers"};
inline constexpr size_t kNumOwners = kOwnerNames.size();

enum class Phase : uint8_t {
  kSetUp,
  kForward,
  kBackward,
  kWeightGradients,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kReduction,  // what is left of it after the last backward pass, and the gradient norm
  kUpdate,
};

inline constexpr std::array<std::string_view, 10> kPhaseNames = {
    "set_up",          "forward",       "backward",         "weight_gradients", "send_forward",
    "receive_forward", "send_backward", "receive_backward", "reduction",        "update"};
inline constexpr size_t kNumPhases = kPhaseNames.size();

struct Moment {
  Phase phase = Phase::kSetUp;
  int32_t chunk = 0;
  int32_t micro_batch = 0;
  bool operator==(const Moment&) const = default;
};

Owner current_owner();
Moment current_moment();

class OwnerScope {
 public:
  explicit OwnerScope(Owner owner);
  ~OwnerScope();
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;

 private:
  Owner outer_;
};

class MomentScope {
 public:
  explicit MomentScope(Moment moment);
  ~MomentScope();
  MomentScope(const MomentScope&) = delete;
  MomentScope& operator=(const MomentScope&) = delete;

 private:
  Moment outer_;
};

}  // namespace layline::trainer::tally
