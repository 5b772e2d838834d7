#include "layline/trainer/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "layline/trainer/kernels/attention.h"
#include "layline/trainer/kernels/rope.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::model {

namespace {

// Views of qkv, batch first.
struct Heads {
  at::Tensor q_BSND, k_BSKD, v_BSKD;
};

struct HeadSizes {
  int64_t num_heads, num_kv_heads, head_size;
  int64_t q_width() const { return num_heads * head_size; }
  int64_t kv_width() const { return num_kv_heads * head_size; }
};

Heads split_heads(const at::Tensor& qkv, const HeadSizes& sizes) {
  const auto part = [&](int64_t offset, int64_t heads) {
    return qkv.narrow(2, offset, heads * sizes.head_size).unflatten(2, {heads, sizes.head_size}).transpose(0, 1);
  };
  return {part(0, sizes.num_heads), part(sizes.q_width(), sizes.num_kv_heads),
          part(sizes.q_width() + sizes.kv_width(), sizes.num_kv_heads)};
}

kernels::AttentionOutput run_kernel(const Heads& heads, layout::AttentionKernel kernel) {
  const tally::WorkScope work(tally::Work::kAttention);
  return kernel == layout::AttentionKernel::kUnfused
             ? kernels::attention_unfused(heads.q_BSND, heads.k_BSKD, heads.v_BSKD)
             : kernels::attention_flash(heads.q_BSND, heads.k_BSKD, heads.v_BSKD);
}

auto run_backward_kernel(const at::Tensor& dout_BSND, const Heads& heads, const kernels::AttentionOutput& output,
                         layout::AttentionKernel kernel) {
  const tally::WorkScope work(tally::Work::kAttention);
  return kernel == layout::AttentionKernel::kUnfused
             ? kernels::attention_unfused_backward(dout_BSND, heads.q_BSND, heads.k_BSKD, heads.v_BSKD, output.saved)
             : kernels::attention_flash_backward(dout_BSND, heads.q_BSND, heads.k_BSKD, heads.v_BSKD, output.out_BSND,
                                                 output.saved);
}

at::Tensor to_sequence_first(const at::Tensor& out_BSND) { return out_BSND.transpose(0, 1).flatten(2).contiguous(); }

// What the kernel gave, or what is needed to have it again.
struct Kept {
  at::Tensor qkv;
  std::optional<kernels::AttentionOutput> output;

  const kernels::AttentionOutput& get(const HeadSizes& sizes, layout::AttentionKernel kernel) {
    if (!output) {
      const tally::WorkScope work(tally::Work::kRecomputation);
      output = run_kernel(split_heads(qkv, sizes), kernel);
    }
    return *output;
  }
};

at::Tensor backward(const at::Tensor& dout, Kept& kept, const HeadSizes& sizes, const Context& context) {
  const Heads heads = split_heads(kept.qkv, sizes);
  const kernels::AttentionOutput output = kept.get(sizes, context.attention);
  kept.output.reset();
  const at::Tensor dout_BSND = dout.unflatten(2, {sizes.num_heads, sizes.head_size}).transpose(0, 1);
  const auto [dq, dk, dv] = run_backward_kernel(dout_BSND, heads, output, context.attention);
  at::Tensor dqkv = at::empty_like(kept.qkv);
  const Heads gradients = split_heads(dqkv, sizes);
  gradients.q_BSND.copy_(dq);
  gradients.k_BSKD.copy_(dk);
  gradients.v_BSKD.copy_(dv);
  kernels::rope_(gradients.q_BSND, context.rope, /*inverse=*/true);
  kernels::rope_(gradients.k_BSKD, context.rope, /*inverse=*/true);
  return dqkv;
}

}  // namespace

Activation attention(const at::Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, Context& context) {
  const HeadSizes sizes{num_heads, num_kv_heads, context.head_size};
  auto kept = std::make_shared<Kept>();
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    kept->qkv = plain(qkv);
    const Heads heads = split_heads(kept->qkv, sizes);
    kernels::rope_(heads.q_BSND, context.rope, /*inverse=*/false);
    kernels::rope_(heads.k_BSKD, context.rope, /*inverse=*/false);
    kept->output = run_kernel(heads, context.attention);
    output = to_sequence_first(kept->output->out_BSND);
    // One copy for this operator and for the next.
    kept->output->out_BSND = plain(output).unflatten(2, {num_heads, context.head_size}).transpose(0, 1);
    if (context.recomputes_attention_and_norms) kept->output.reset();
  }
  output = with_backward(output, {qkv}, [kept, sizes, &context](const at::Tensor& dout) -> std::vector<at::Tensor> {
    return {backward(dout, *kept, sizes, context)};
  });
  if (!context.recomputes_attention_and_norms) return {output, Saved(output)};
  return {output, Saved([kept, sizes, kernel = context.attention] {
            return to_sequence_first(kept->get(sizes, kernel).out_BSND);
          })};
}

}  // namespace layline::trainer::model
