#include "layline/trainer/kernels/rope.h"

#include <ATen/ATen.h>

#include <numbers>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

// transformers' modeling_rope_utils._compute_llama3_parameters.
at::Tensor scaled_as_llama3(const at::Tensor& frequencies, const Llama3RopeScaling& scaling) {
  const auto old_length = static_cast<double>(scaling.original_max_position_embeddings);
  const double low_wavelength = old_length / scaling.low_freq_factor;
  const double high_wavelength = old_length / scaling.high_freq_factor;
  const at::Tensor wavelengths = 2 * std::numbers::pi / frequencies;
  const at::Tensor divided = at::where(wavelengths > low_wavelength, frequencies / scaling.factor, frequencies);
  const at::Tensor smooth =
      (old_length / wavelengths - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  const at::Tensor smoothed = (1 - smooth) * divided / scaling.factor + smooth * divided;
  const at::Tensor is_between = (wavelengths >= high_wavelength).logical_and(wavelengths <= low_wavelength);
  return at::where(is_between, smoothed, divided);
}

}  // namespace

RopeTable make_rope_table(int64_t sequence_length, int64_t head_size, const RopeOptions& options,
                          at::ScalarType dtype) {
  const at::TensorOptions table = at::dtype(dtype == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor exponents = at::arange(0, head_size, 2, table) / static_cast<double>(head_size);
  at::Tensor frequencies = at::reciprocal(at::pow(options.theta, exponents));
  if (options.llama3) frequencies = scaled_as_llama3(frequencies, *options.llama3);
  if (options.linear_factor) frequencies = frequencies / *options.linear_factor;
  const at::Tensor angles = at::arange(sequence_length, table).unsqueeze(1) * frequencies.unsqueeze(0);
  return {.cos_SD2 = angles.cos(), .sin_SD2 = angles.sin()};
}

void rope_(const at::Tensor& x_BSND, const RopeTable& table, bool inverse) {
  const int64_t sequence_length = x_BSND.size(1);
  const int64_t half = x_BSND.size(3) / 2;
  TORCH_CHECK(x_BSND.size(3) % 2 == 0 && x_BSND.stride(3) == 1, "rope_ rotates pairs of contiguous dims, not ",
              x_BSND.sizes(), " with strides ", x_BSND.strides());
  TORCH_CHECK(table.cos_SD2.size(0) >= sequence_length, "the table has ", table.cos_SD2.size(0), " positions, not ",
              sequence_length);
  check_dense(table.cos_SD2, "cos_SD2", arithmetic_type(x_BSND), table.cos_SD2.size(0) * half);
  check_dense(table.sin_SD2, "sin_SD2", arithmetic_type(x_BSND), table.cos_SD2.size(0) * half);
  if (x_BSND.is_meta()) return;
  const int64_t num_heads = x_BSND.size(2);
  visit_element_type(x_BSND.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto rotate = kernels<simd::RopeKernels<T>>().rotate;
    const auto* cos = data<simd::Arithmetic<T>>(table.cos_SD2);
    const auto* sin = data<simd::Arithmetic<T>>(table.sin_SD2);
    parallel_rows(x_BSND.size(0) * sequence_length, 2 * num_heads * half, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) {
        const int64_t position = token % sequence_length;
        T* heads = data<T>(x_BSND) + token / sequence_length * x_BSND.stride(0) + position * x_BSND.stride(1);
        rotate(heads, cos + position * half, sin + position * half, num_heads, x_BSND.stride(2), half, inverse);
      }
    });
  });
}

}  // namespace layline::trainer::kernels
