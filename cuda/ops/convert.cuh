// SPDX-License-Identifier: Apache-2.0
// Copies that convert; included by a file a few destination types, so that each compiles fast.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "copy.hpp"
#include "device/elementwise.cuh"

namespace gable::cuda {

/// To the nearest float or, where `value` is none, to the neighbour with an odd last bit: rounding
/// that further to half or bfloat16 gives what rounding `value` once would.
__device__ __forceinline__ float round_to_odd(double value) {
  const float f = __double2float_rz(value);
  return static_cast<double>(f) == value ? f : __uint_as_float(__float_as_uint(f) | 1U);
}

/// Float to integer as on the CPU: NaN gives 0, out of range saturates.
template <class To, class From>
__device__ __forceinline__ To convert_saturating(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                !std::is_same_v<To, bool>) {
    if (value != value) return 0;
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return convert<To>(value);
  }
}

template <class To>
struct Converted {
  template <class C, class From>
  __device__ __forceinline__ void operator()(C& out, From in) const {
    if constexpr (SmallFloat<To> && std::is_same_v<From, double>)
      out = round_to_odd(in);
    else
      out = convert_saturating<C>(in);
  }
};

template <class To>
void convert_copy(const AnyView& dst, const AnyView& src, const Stream& stream) {
  const StridedLoop<2> loop({&dst.layout, &src.layout});
  const Addresses<2> addresses{{dst.data, src.data}};
  visit_dtype(src.dtype, [&]<class From>(TypeTag<From>) {
    if constexpr (!std::is_same_v<To, From>)
      elementwise<TypeList<To>, TypeList<From>>(stream, loop, addresses, Converted<To>{});
  });
}

}  // namespace gable::cuda
