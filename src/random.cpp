// SPDX-License-Identifier: Apache-2.0
// Random tensors: checks, and one kernel for all distributions.
#include "gable/tensor/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gable {

namespace {

// The kernel draws in row-major order of a dense tensor, so that the memory format does not
// change which element gets which number.
template <Element T>
Tensor<T> draw(Where where, const Shape& shape, const TensorOptions& o, Generator& g,
               Distribution distribution, double a, double b) {
  Tensor<T> out(shape, o.device);
  const Generator::State state = g.advance(out.numel());
  launch(o.device,
         RandomArgs<T>{out.write_view(where), distribution, state.seed, state.offset, a, b});
  return o.format == MemoryFormat::row_major ? out : out.contiguous(o.format);
}

}  // namespace

Generator& default_generator() {
  static Generator generator(0);
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

template <FloatElement T>
Tensor<T> rand(const Shape& shape, double low, double high, TensorOptions o, Generator& g) {
  check<TypeError>(low <= high && std::isfinite(high - low), "rand",
                   "expected finite low <= high a finite distance apart, got ", low, " and ", high);
  return draw<T>("rand", shape, o, g, Distribution::uniform, low, high);
}

template <FloatElement T>
Tensor<T> randn(const Shape& shape, double mean, double stddev, TensorOptions o, Generator& g) {
  check<TypeError>(std::isfinite(mean) && std::isfinite(stddev) && stddev >= 0, "randn",
                   "expected a finite mean and stddev >= 0, got ", mean, " and ", stddev);
  return draw<T>("randn", shape, o, g, Distribution::normal, mean, stddev);
}

template <Element T>
Tensor<T> randint(int64_t low, int64_t high, const Shape& shape, TensorOptions o, Generator& g) {
  check<TypeError>(
      low < high && static_cast<uint64_t>(high) - static_cast<uint64_t>(low) <= (uint64_t{1} << 32),
      "randint", "expected low < high, at most 2^32 apart, got ", low, " and ", high);
  // The kernel's bounds are doubles.
  int64_t least = -(int64_t{1} << 53);
  int64_t greatest = int64_t{1} << 53;
  if constexpr (std::is_integral_v<T>) {
    least = std::max<int64_t>(least, std::numeric_limits<T>::min());
    greatest = std::min<int64_t>(greatest, std::numeric_limits<T>::max());
  }
  check<TypeError>(low >= least && high - 1 <= greatest, "randint", "expected integers from ",
                   least, " to ", greatest, " for dtype ", dtype_of<T>, ", got ", low, " to ",
                   high - 1);
  return draw<T>("randint", shape, o, g, Distribution::integer, static_cast<double>(low),
                 static_cast<double>(high));
}

template <Element T>
Tensor<T> bernoulli(double probability, const Shape& shape, TensorOptions o, Generator& g) {
  check<TypeError>(probability >= 0 && probability <= 1, "bernoulli",
                   "expected a probability in [0, 1], got ", probability);
  return draw<T>("bernoulli", shape, o, g, Distribution::bernoulli, probability, 0);
}

Tensor<int64_t> randperm(int64_t n, Device device, Generator& g) {
  check(n >= 0, "randperm", "expected n >= 0, got ", n);
  Tensor<int64_t> out({n}, device);
  const Generator::State state = g.advance(2 * n);
  launch(device, PermutationArgs{out.write_view("randperm"), state.seed, state.offset});
  return out;
}

#define GABLE_INSTANTIATE_FLOAT(T)                                                     \
  template Tensor<T> rand<T>(const Shape&, double, double, TensorOptions, Generator&); \
  template Tensor<T> randn<T>(const Shape&, double, double, TensorOptions, Generator&);
#define GABLE_INSTANTIATE(T)                                                                \
  template Tensor<T> randint<T>(int64_t, int64_t, const Shape&, TensorOptions, Generator&); \
  template Tensor<T> bernoulli<T>(double, const Shape&, TensorOptions, Generator&);
GABLE_INSTANTIATE_FLOAT(float)
GABLE_INSTANTIATE_FLOAT(double)
GABLE_INSTANTIATE_FLOAT(half)
GABLE_INSTANTIATE_FLOAT(bfloat16)
GABLE_INSTANTIATE(float)
GABLE_INSTANTIATE(double)
GABLE_INSTANTIATE(half)
GABLE_INSTANTIATE(bfloat16)
GABLE_INSTANTIATE(int32_t)
GABLE_INSTANTIATE(int64_t)
GABLE_INSTANTIATE(uint8_t)
GABLE_INSTANTIATE(bool)

}  // namespace gable
