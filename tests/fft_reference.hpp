// SPDX-License-Identifier: Apache-2.0
// Fourier transforms in double from their definition.
#pragma once

#include <cmath>
#include <complex>
#include <numbers>
#include <optional>
#include <vector>

#include "gable/ops/fft.hpp"

namespace gable::testing_fft {

/// What one of the public functions should give for a contiguous x.
inline Tensor<double> dft(FftKind kind, bool inverse, const Tensor<double>& x,
                          std::optional<int64_t> wanted = {}, int64_t dim = -1,
                          fft::Norm norm = fft::Norm::backward) {
  using Value = std::complex<double>;
  const bool from_real = kind == FftKind::real_to_complex;
  const bool to_real = kind == FftKind::complex_to_real;
  Shape shape = x.shape();
  if (!from_real) shape.erase(shape.size() - 1);
  if (dim < 0) dim += shape.size();
  const auto d = static_cast<int>(dim);
  const int64_t has = shape[d];
  const int64_t n = wanted.value_or(to_real ? 2 * (has - 1) : has);
  const int64_t gives = from_real ? n / 2 + 1 : n;
  int64_t outer = 1;
  int64_t inner = 1;
  for (int i = 0; i < d; ++i) outer *= shape[i];
  for (int i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  shape[d] = gives;
  if (!to_real) shape.push_back(2);
  Tensor<double> y(shape);

  std::vector<Value> roots;
  for (int64_t i = 0; i < n; ++i)
    roots.push_back(std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(i) /
                                        static_cast<double>(n)));
  const bool divides = (norm == fft::Norm::backward) == inverse;
  const double scale = norm == fft::Norm::ortho ? 1 / std::sqrt(static_cast<double>(n))
                       : divides                ? 1 / static_cast<double>(n)
                                                : 1;
  for (int64_t line = 0; line < outer * inner; ++line) {
    auto at = [&](int64_t j, int64_t size) {
      return (line / inner * size + j) * inner + line % inner;
    };
    std::vector<Value> in(static_cast<size_t>(n));
    const int64_t read = std::min(has, to_real ? n / 2 + 1 : n);
    for (int64_t j = 0; j < read; ++j) {
      const double* p = x.data() + at(j, has) * (from_real ? 1 : 2);
      in[static_cast<size_t>(j)] = {p[0], from_real ? 0 : p[1]};
      if (!to_real) continue;
      if (j == 0 || 2 * j == n)
        in[static_cast<size_t>(j)] = p[0];
      else
        in[static_cast<size_t>(n - j)] = {p[0], -p[1]};
    }
    for (int64_t k = 0; k < gives; ++k) {
      Value sum = 0;
      for (int64_t j = 0; j < n; ++j)
        sum += in[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
      double* p = y.data() + at(k, gives) * (to_real ? 1 : 2);
      p[0] = scale * sum.real();
      if (!to_real) p[1] = scale * sum.imag();
    }
  }
  return y;
}

}  // namespace gable::testing_fft
