// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by Eigen's FFT module (its own, derived from KISS FFT).
#include "gable/ops/fft.hpp"

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdlib>

#include "eigen.hpp"
#define Eigen gable_eigen
#include <unsupported/Eigen/FFT>
#undef Eigen
#include "kernel.hpp"
#include "lines.hpp"

namespace gable {
namespace {

template <class T>
using Transforms = eigen::FFT<T>;

template <class T>
Transforms<T> make_transforms() {
  using Flag = typename Transforms<T>::Flag;
  return Transforms<T>({},
                       static_cast<Flag>(Transforms<T>::Unscaled | Transforms<T>::HalfSpectrum));
}

constexpr int64_t kBlockValues = 1 << 18;   // of neighbouring lines that are taken at once
constexpr int64_t kKeptLength = 1 << 16;    // factors of longer transforms are made anew
constexpr int64_t kKeptElements = 1 << 20;  // when so many were asked for, all kept ones go

// Calls f with transforms that keep this thread's last factors.
template <class T, class F>
void with_transforms(int64_t n, F&& f) {
  if (n > kKeptLength) {
    Transforms<T> transforms = make_transforms<T>();
    f(transforms);
    return;
  }
  thread_local Transforms<T> kept = make_transforms<T>();
  thread_local int64_t elements = 0;
  elements += n;
  if (elements > kKeptElements) {
    kept.impl().clear();
    elements = n;
  }
  f(kept);
}

// One dense line, without the scale; overwrites `in`.
template <class T>
void transform(Transforms<T>& transforms, const FftArgs<T>& a, T* out, T* in) {
  if (a.n == 1) {  // which the module gets wrong
    out[0] = in[0];
    if (a.kind == FftKind::complex) out[1] = in[1];
    if (a.kind == FftKind::real_to_complex) out[1] = 0;
    return;
  }
  // Rounding leaves traces in, or of, the imaginary parts that must be 0.
  auto clear_unpaired = [&](T* bins) {
    bins[1] = 0;
    if (a.n % 2 == 0) bins[a.n + 1] = 0;
  };
  auto* out_bins = reinterpret_cast<std::complex<T>*>(out);
  const auto* in_bins = reinterpret_cast<const std::complex<T>*>(in);
  switch (a.kind) {
    case FftKind::real_to_complex:
      transforms.fwd(out_bins, in, a.n);
      clear_unpaired(out);
      break;
    case FftKind::complex_to_real:
      clear_unpaired(in);
      transforms.inv(out, in_bins, a.n);
      break;
    case FftKind::complex:
      if (a.inverse)
        transforms.inv(out_bins, in_bins, a.n);
      else
        transforms.fwd(out_bins, in_bins, a.n);
  }
}

// A view's lines: `length` values of `parts` elements, two where they are complex.
template <class T>
struct LinesOf {
  T* data;
  Layout rest;  // an element a line
  int64_t length;
  int64_t step;
  int64_t parts;
  int64_t part_step;

  LinesOf(const TensorView<T>& view, bool complex)
      : data(view.data),
        rest(view.layout),
        parts(complex ? 2 : 1),
        part_step(complex ? rest.stride(-1) : 0) {
    if (complex) rest = cpu::without_dim(rest, rest.rank() - 1);
    length = rest.size(-1);
    step = rest.stride(-1);
    rest = cpu::without_dim(rest, rest.rank() - 1);
  }
  [[nodiscard]] int64_t elements() const { return length * parts; }
  /// Calls f(element of the view, element of dense lines) for `count` lines from offset `at`.
  template <class F>
  void each(int64_t at, int64_t count, int64_t neighbour, F&& f) const {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t line = 0; line < count; ++line)
        for (int64_t part = 0; part < parts; ++part)
          f(data[at + line * neighbour + i * step + part * part_step],
            line * elements() + i * parts + part);
  }
};

}  // namespace

template <class T>
static void kernel(const FftArgs<T>& a) {
  // The module counts 4 n in int.
  check<Error>(a.n < (int64_t{1} << 29), a.name, "expected a length below 2^29 on the CPU, got ",
               a.n);
  const LinesOf<T> out(a.out, a.kind != FftKind::complex_to_real);
  const LinesOf<const T> in(a.in, a.kind != FftKind::real_to_complex);
  const StridedLoop<2> loop({&out.rest, &in.rest});
  const auto& next = loop.row_strides();
  // Neighbours share cache lines where they lie nearer than the values of a line do.
  const bool blocked =
      std::abs(next[0]) < std::abs(out.step) || std::abs(next[1]) < std::abs(in.step);
  const int64_t block = blocked ? std::clamp<int64_t>(kBlockValues / a.n, 1, cpu::kLineBlock) : 1;
  const auto scale = static_cast<T>(a.scale);
  const int64_t work = a.n * std::bit_width(static_cast<uint64_t>(a.n));
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / work);
  parallel_for(loop.numel(), grain, [&](int64_t begin, int64_t end) {
    const cpu::Scratch<T> from(block * in.elements());
    const cpu::Scratch<T> to(block * out.elements());
    with_transforms<T>(a.n, [&](Transforms<T>& transforms) {
      loop.visit(begin, end, [&](const auto& at, int64_t lines) {
        for (int64_t first = 0; first < lines; first += block) {
          const int64_t count = std::min(block, lines - first);
          in.each(at[1] + first * next[1], count, next[1],
                  [&](const T& x, int64_t i) { from[i] = x; });
          for (int64_t line = 0; line < count; ++line)
            transform(transforms, a, &to[line * out.elements()], &from[line * in.elements()]);
          out.each(at[0] + first * next[0], count, next[0],
                   [&](T& y, int64_t i) { y = scale * to[i]; });
        }
      });
    });
  });
}
GABLE_CPU_KERNEL(FftArgs<float>)
GABLE_CPU_KERNEL(FftArgs<double>)

}  // namespace gable
