// SPDX-License-Identifier: Apache-2.0
// Copy with conversion, fill, ranges.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "gable/tensor/kernels.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {

// To the nearest float or, where `value` is none, to the neighbour with an odd last bit: rounding
// that further to half or bfloat16 gives what rounding `value` once would.
static float round_to_odd(double value) {
  const auto f = static_cast<float>(value);
  const auto back = static_cast<double>(f);
  const auto bits = std::bit_cast<uint32_t>(f);
  if (back == value || std::isnan(value) || (bits & 1U) != 0) return f;
  return std::bit_cast<float>(std::abs(back) > std::abs(value) ? bits - 1 : bits + 1);
}

// Float to integer without undefined behaviour: NaN gives 0, the rest saturates.
template <class To, class From>
static To convert_saturating(From value) {
  if constexpr (SmallFloat<From>) {
    return convert_saturating<To>(static_cast<float>(value));
  } else if constexpr (SmallFloat<To> && std::is_same_v<From, double>) {
    return To(round_to_odd(value));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                       !std::is_same_v<To, bool>) {
    if (std::isnan(value)) return 0;
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return convert<To>(value);
  }
}

template <class To, class From>
static void copy_rows(const TensorView<To>& dst, const TensorView<const From>& src,
                      bool accumulate) {
  const StridedLoop<2> loop({&dst.layout, &src.layout});
  const auto [to_step, from_step] = loop.row_strides();
  loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
    To* to = dst.data + at[0];
    const From* from = src.data + at[1];
    if (accumulate) {
      using C = Compute<To>;
      for (int64_t i = 0; i < n; ++i) {
        To& target = to[i * to_step];
        target = convert<To>(static_cast<C>(convert<C>(target) + convert<C>(from[i * from_step])));
      }
      return;
    }
    if constexpr (std::is_same_v<To, From>) {
      if (to_step == 1 && from_step == 1) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(To));
        return;
      }
    }
    if (to_step == 1 && from_step == 1) {
      for (int64_t i = 0; i < n; ++i) to[i] = convert_saturating<To>(from[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i * to_step] = convert_saturating<To>(from[i * from_step]);
    }
  });
}

static void kernel(const CopyArgs& a) {
  visit_dtype(a.dst.dtype, [&]<class To>(TypeTag<To>) {
    visit_dtype(a.src.dtype, [&]<class From>(TypeTag<From>) {
      copy_rows<To, From>(a.dst.as<To>(), a.src.as<const From>(), a.accumulate);
    });
  });
}
GABLE_CPU_KERNEL(CopyArgs)

template <class T>
static void kernel(const FillArgs<T>& a) {
  const StridedLoop<1> loop({&a.out.layout});
  const int64_t step = loop.row_strides()[0];
  loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
    T* out = a.out.data + at[0];
    if (step == 1) {
      std::fill_n(out, n, a.value);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * step] = a.value;
    }
  });
}
GABLE_CPU_KERNEL_ALL(FillArgs)

template <class T>
static void kernel(const RangeArgs<T>& a) {
  parallel_for(a.out.numel(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // wraps instead of overflowing past the last element
        a.out.data[i] = convert<T>(
            static_cast<int64_t>(static_cast<uint64_t>(a.int_start) +
                                 static_cast<uint64_t>(i) * static_cast<uint64_t>(a.int_step)));
      } else {
        a.out.data[i] = convert<T>(a.start + static_cast<double>(i) * a.step);
      }
    }
  });
}
GABLE_CPU_KERNEL_ALL(RangeArgs)

}  // namespace gable
