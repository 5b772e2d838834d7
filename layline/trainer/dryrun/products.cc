#include "layline/trainer/dryrun/products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "layline/trainer/loop/memory_counter.h"

namespace layline::trainer::dryrun {

namespace {

// [batch, M, K] times [batch, K, N]; a matrix is a batch of one.
struct Product {
  std::array<int64_t, 4> sizes{};  // batch, M, N, K
  bool is_transposed_a = false, is_transposed_b = false;
  bool is_batched = false;
  int num_threads = 1;
  auto operator<=>(const Product&) const = default;
};

bool is_transposed(const at::Tensor& x) { return x.stride(-1) != 1 && x.stride(-2) == 1; }

Product product_of(const at::Tensor& a, const at::Tensor& b) {
  const bool is_batched = a.dim() == 3;
  return {{is_batched ? a.size(0) : 1, a.size(-2), b.size(-1), a.size(-1)},
          is_transposed(a),
          is_transposed(b),
          is_batched,
          at::get_num_threads()};
}

at::Tensor operand(const Product& product, int64_t rows, int64_t columns, bool is_transposed) {
  const at::TensorOptions options(at::kBFloat16);
  const int64_t batch = product.sizes[0];
  at::Tensor x = is_transposed ? at::empty({batch, columns, rows}, options).transpose(1, 2)
                               : at::empty({batch, rows, columns}, options);
  return product.is_batched ? x : x.select(0, 0);
}

int64_t measured_scratch_bytes(const Product& product) {
  const auto [batch, m, n, k] = product.sizes;
  const at::Tensor a = operand(product, m, k, product.is_transposed_a);
  const at::Tensor b = operand(product, k, n, product.is_transposed_b);
  at::Tensor out = operand(product, m, n, false);
  loop::MemoryCounter& memory = loop::MemoryCounter::install();
  const int64_t before = memory.live_bytes();
  memory.reset_peak();
  product.is_batched ? at::bmm_out(out, a, b) : at::mm_out(out, a, b);
  return memory.peak_bytes() - before;
}

// Small enough to be computed in milliseconds.
Product measurable(Product product) {
  constexpr int64_t kMost = int64_t{1} << 28;  // multiplications
  const auto multiplications = [&] {
    int64_t count = 1;
    for (const int64_t size : product.sizes) count *= std::min(size, kMost);
    return count;
  };
  while (multiplications() > kMost) *std::ranges::max_element(product.sizes) /= 2;
  return product;
}

int64_t scratch_bytes(const at::Tensor& a, const at::Tensor& b) {
  static std::mutex mutex;
  static std::map<Product, int64_t> known;
  const Product product = measurable(product_of(a, b));
  const std::lock_guard lock(mutex);
  const auto found = known.find(product);
  if (found != known.end()) return found->second;
  const at::NoGradGuard no_grad;
  return known[product] = measured_scratch_bytes(product);
}

void take_scratch(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  if (a.scalar_type() != at::kBFloat16 || out.numel() == 0) return;
  const int64_t bytes = scratch_bytes(a, b);
  if (bytes > 0) at::empty({bytes}, a.options().dtype(at::kByte));
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.size(1) == b.size(0), "a product of ", a.sizes(), " and ", b.sizes());
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  take_scratch(a, b, out);
  return out;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  TORCH_CHECK(a.size(1) == b.size(0) && out.size(0) == a.size(0) && out.size(1) == b.size(1), "a product of ",
              a.sizes(), " and ", b.sizes(), " into ", out.sizes());
  take_scratch(a, b, out);
  return out;
}

at::Tensor bmm(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), "a product of ", a.sizes(), " and ", b.sizes());
  at::Tensor out = at::empty({a.size(0), a.size(1), b.size(2)}, a.options());
  take_scratch(a, b, out);
  return out;
}

// libtorch warns that its own kernels are replaced, which is the point.
class Silence : public c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

}  // namespace

void take_scratch_in_products() {
  static torch::Library* const library = [] {
    Silence silence;
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    made->impl("mm", torch::CppFunction::makeFromUnboxedFunction(&mm));
    made->impl("mm.out", torch::CppFunction::makeFromUnboxedFunction(&mm_out));
    made->impl("bmm", torch::CppFunction::makeFromUnboxedFunction(&bmm));
    return made;  // for as long as the process
  }();
  (void)library;
}

}  // namespace layline::trainer::dryrun
