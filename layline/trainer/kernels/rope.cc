#include "layline/trainer/kernels/rope.h"

#include <ATen/ATen.h>

#include <numbers>

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

void rope_(at::Tensor x_BSND, const RopeTable& table, bool inverse) {
  const at::NoGradGuard no_grad;
  const int64_t half = x_BSND.size(-1) / 2;
  const at::Tensor cos = table.cos_SD2.narrow(0, 0, x_BSND.size(1)).unsqueeze(1);
  at::Tensor sin = table.sin_SD2.narrow(0, 0, x_BSND.size(1)).unsqueeze(1);
  if (inverse) sin = -sin;
  const at::Tensor x = x_BSND.to(cos.scalar_type());
  const at::Tensor a = x.narrow(-1, 0, half);
  const at::Tensor b = x.narrow(-1, half, half);
  x_BSND.copy_(at::cat({a * cos - b * sin, b * cos + a * sin}, -1));
}

}  // namespace layline::trainer::kernels
