// SPDX-License-Identifier: Apache-2.0
// Argument structs of the kernels that tensors themselves need: copy, fill, ranges, random.
#pragma once

#include <cstdint>

#include "gable/core/cost.hpp"
#include "gable/core/device.hpp"
#include "gable/core/dtype.hpp"
#include "gable/core/type_list.hpp"
#include "gable/tensor/view.hpp"

namespace gable {

/// dst = src, converting; shapes equal, views may be strided and must not overlap. Only the CUDA
/// backend meets views of other devices than its own.
struct CopyArgs {
  static constexpr const char* name = "copy";
  AnyView dst;
  AnyView src;
  bool accumulate = false;  ///< dst += src instead
  Device dst_device = kCpu;
  Device src_device = kCpu;
  [[nodiscard]] Cost cost() const {
    return {.flops = accumulate ? dst.layout.numel() : 0,
            .bytes_read = src.bytes() + (accumulate ? dst.bytes() : 0),
            .bytes_written = dst.bytes()};
  }
};

template <class T>
struct FillArgs {
  static constexpr const char* name = "fill";
  TensorView<T> out;
  T value;
  [[nodiscard]] Cost cost() const { return {.bytes_written = out.bytes()}; }
};

/// out[i] = start + i * step, computed in double (integers in int64); out is dense and 1-d.
template <class T>
struct RangeArgs {
  static constexpr const char* name = "arange";
  TensorView<T> out;
  double start;
  double step;
  int64_t int_start;
  int64_t int_step;
  [[nodiscard]] Cost cost() const {
    return {.flops = 2 * out.numel(), .bytes_written = out.bytes()};
  }
};

enum class Distribution : uint8_t { uniform, normal, integer, bernoulli };

/// Philox4x32-10 draws: element i of the dense row-major `out` uses counter offset + i / 4, lane
/// i % 4, of key `seed`, so any split over threads or devices gives the same numbers.
/// uniform: a + (b - a) u, u in [0, 1); normal: a + b z; integer: in [a, b); bernoulli: u < a.
template <class T>
struct RandomArgs {
  static constexpr const char* name = "random";
  TensorView<T> out;
  Distribution distribution;
  uint64_t seed;
  uint64_t offset;
  double a;
  double b;
  [[nodiscard]] Cost cost() const {
    return {.flops = 12 * out.numel(), .bytes_written = out.bytes()};
  }
};

/// out = 0 .. n-1 in an order that seed and offset fix; dense.
struct PermutationArgs {
  static constexpr const char* name = "randperm";
  TensorView<int64_t> out;
  uint64_t seed;
  uint64_t offset;
  [[nodiscard]] Cost cost() const { return {.bytes_written = out.bytes()}; }
};

}  // namespace gable
