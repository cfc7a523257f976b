// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms along one dimension: rfft, irfft, fft, ifft.
//
// A complex tensor is a real one with a last dimension of 2: real and imaginary part. `dim` counts
// without it, so that the same number names the same dimension before and after a transform.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

#include "gable/ops/elementwise.hpp"
#include "gable/ops/op.hpp"

namespace gable {

namespace fft {

/// Which direction divides by the length n: the inverse (backward), the forward one, or both by
/// its square root (ortho).
enum class Norm : uint8_t { backward, ortho, forward };

/// Tensor-like of float or double; half and bfloat16 are converted by the caller.
template <class X>
concept Transformable = TensorLike<X> &&
    (std::same_as<typename X::value_type, float> || std::same_as<typename X::value_type, double>);

}  // namespace fft

// --- kernels' arguments

enum class FftKind : uint8_t {
  real_to_complex,  ///< (..., n) to (..., n / 2 + 1, 2), the bins that are not conjugates of others
  complex_to_real,  ///< the reverse, without a look at the imaginary parts that must be 0
  complex           ///< (..., n, 2) to itself
};

/// out = scale * sum over j of in[j] exp(-2 pi i j k / n), + where `inverse`, without other
/// factors. Any strides; the two do not overlap. A real-to-complex transform gives an imaginary
/// part of exactly 0 where it must be 0: in bin 0, and in bin n / 2 of an even length.
template <class T>
struct FftArgs {
  static constexpr const char* name = "fft";
  TensorView<T> out;
  TensorView<const T> in;
  FftKind kind;
  bool inverse;
  int64_t n;
  double scale;
  /// 5 n log2(n) a complex line, half of it a real one.
  [[nodiscard]] Cost cost() const {
    const int64_t values = kind == FftKind::real_to_complex ? in.numel() : out.numel();
    const int64_t log2 = std::bit_width(static_cast<uint64_t>(n)) - 1;
    return {.flops = 5 * values / 2 * log2, .bytes_read = in.bytes(), .bytes_written = out.bytes()};
  }
};

// --- operator

template <FloatElement T>
struct FftOp : OpBase {
  const char* name;
  FftKind kind;
  bool inverse;
  std::optional<int64_t> wanted;  // the length n
  int64_t dim;
  fft::Norm norm;
  int64_t n = 0;
  int64_t input_size = 0;
  double scale = 1;

  FftOp(const char* op, FftKind k, bool inv, std::optional<int64_t> length, int64_t d, fft::Norm m)
      : name(op), kind(k), inverse(inv), wanted(length), dim(d), norm(m) {}

  Tensor<T> forward(const Tensor<T>& x) {
    const bool complex = kind != FftKind::real_to_complex;
    if (complex)
      check(x.rank() >= 2 && x.size(-1) == 2, name,
            "expected a complex tensor (..., 2) with a dimension to transform, got ", x.shape());
    else
      check(x.rank() >= 1, name, "expected a dimension to transform, got ", x.shape());
    dim = wrap_dim(dim, x.rank() - (complex ? 1 : 0), name);
    input_size = x.size(dim);
    const bool to_real = kind == FftKind::complex_to_real;
    n = wanted.value_or(to_real ? 2 * (input_size - 1) : input_size);
    check<TypeError>(n >= 1 && n <= std::numeric_limits<int32_t>::max(), name,
                     "expected a length n from 1 to 2147483647, got ", n, " for dimension ", dim,
                     " of ", x.shape());
    if (norm == fft::Norm::ortho)
      scale = 1 / std::sqrt(static_cast<double>(n));
    else if ((norm == fft::Norm::backward) == inverse)
      scale = 1 / static_cast<double>(n);
    return run(kind, inverse, fitted(x, to_real ? n / 2 + 1 : n));
  }

  // The adjoints are the transforms of the other direction with the same factor. Bins that stand
  // for their conjugates, too, count twice in a complex-to-real transform.
  Grads<1> backward(const Tensor<T>& dy) {
    Tensor<T> dx;
    switch (kind) {
      case FftKind::complex: dx = run(kind, !inverse, dy); break;
      case FftKind::real_to_complex: {
        const Tensor<T> halved = dy.clone();
        mul_scalar_(paired_bins(halved), 0.5);
        dx = run(FftKind::complex_to_real, true, halved);
        break;
      }
      case FftKind::complex_to_real:
        dx = run(FftKind::real_to_complex, false, dy);
        mul_scalar_(paired_bins(dx), 2);
        break;
    }
    return {fitted(dx, input_size).any()};
  }

 private:
  [[nodiscard]] Tensor<T> paired_bins(const Tensor<T>& half_spectrum) const {
    return half_spectrum.narrow(dim, 1, (n - 1) / 2);
  }
  // Cut, or filled up with zeros, to `size` along dim.
  [[nodiscard]] Tensor<T> fitted(const Tensor<T>& x, int64_t size) const {
    const int64_t has = x.size(dim);
    if (has >= size) return x.narrow(dim, 0, size);
    Shape shape = x.shape();
    shape[static_cast<int>(dim)] = size;
    const Tensor<T> y = zeros<T>(shape, {.device = x.device()});
    y.narrow(dim, 0, has).copy_(x);
    return y;
  }
  [[nodiscard]] Tensor<T> run(FftKind k, bool inv, const Tensor<T>& x) const {
    Shape shape = x.shape();
    if (k == FftKind::real_to_complex) shape.push_back(2);
    if (k == FftKind::complex_to_real) shape.erase(shape.size() - 1);
    shape[static_cast<int>(dim)] = k == FftKind::real_to_complex ? n / 2 + 1 : n;
    const Tensor<T> y(shape, x.device());
    const Tensor<T> in = x.transpose(dim, k == FftKind::real_to_complex ? -1 : -2);
    const Tensor<T> out = y.transpose(dim, k == FftKind::complex_to_real ? -1 : -2);
    launch(x.device(), FftArgs<T>{out.write_view(name), in.view(), k, inv, n, scale});
    return y;
  }
};

// --- public functions

namespace fft {

/// Transform of real x (..., m, ...) to the n / 2 + 1 bins (..., n / 2 + 1, ..., 2) that are not
/// conjugates of others. x is cut, or filled up with zeros, to `n` elements along `dim`; without
/// `n` it is taken whole. Any strides, float and double, gradient. Lengths without large prime
/// factors are fastest. Throws ShapeError for scalars, TypeError unless 1 <= n < 2^31, IndexError
/// for a missing dimension.
template <Transformable X>
auto rfft(const X& x, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = Norm::backward) {
  return apply(FftOp<element_of<X>>("rfft", FftKind::real_to_complex, false, n, dim, norm), x);
}

/// Inverse of rfft(): bins (..., m, ..., 2) to real (..., n, ...). `n` is 2 (m - 1) unless given;
/// odd lengths must be. x is cut or filled up with zeros to n / 2 + 1 bins. The imaginary parts of
/// bin 0 and of bin n / 2 of an even length are not read. Throws as rfft(), and ShapeError unless
/// the last dimension is 2.
template <Transformable X>
auto irfft(const X& x, std::optional<int64_t> n = {}, int64_t dim = -1,
           Norm norm = Norm::backward) {
  return apply(FftOp<element_of<X>>("irfft", FftKind::complex_to_real, true, n, dim, norm), x);
}

/// Transform of complex x (..., m, ..., 2) to (..., n, ..., 2); `n` as in rfft(). Throws as
/// irfft().
template <Transformable X>
auto fft(const X& x, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = Norm::backward) {
  return apply(FftOp<element_of<X>>("fft", FftKind::complex, false, n, dim, norm), x);
}

/// Inverse of fft().
template <Transformable X>
auto ifft(const X& x, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = Norm::backward) {
  return apply(FftOp<element_of<X>>("ifft", FftKind::complex, true, n, dim, norm), x);
}

}  // namespace fft

}  // namespace gable
