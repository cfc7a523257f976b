// SPDX-License-Identifier: Apache-2.0
// Copy with conversion, fill, ranges.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "convert-inl.hpp"
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

// Elements of a block of a transposed copy: it and its image fit the first-level cache.
static constexpr int64_t kBlockElements = 1024;

// A copy whose rows lie across memory in the source (NCHW to NHWC, a transposed matrix): blocks
// instead of column walks, which would fetch a cache line an element. False where it is not one.
template <class T>
static bool copy_transposed(const StridedLoop<2>& loop, T* to, const T* from) {
  const int row = loop.rank() - 1;
  int column = -1;  // the dimension that is nearest to dense in the source
  int64_t least = std::abs(loop.strides(row)[1]);
  for (int d = 0; d < row; ++d) {
    const int64_t step = std::abs(loop.strides(d)[1]);
    if (step == 0 || step >= least) continue;
    least = step;
    column = d;
  }
  if (column < 0) return false;

  const int64_t rows = loop.size(row);
  const int64_t columns = loop.size(column);
  const int64_t block_rows = std::min<int64_t>(rows, 32);
  const int64_t block_columns = std::min(columns, std::max<int64_t>(32, kBlockElements / rows));
  const int64_t row_blocks = (rows + block_rows - 1) / block_rows;
  const int64_t column_blocks = (columns + block_columns - 1) / block_columns;
  const auto [to_row, from_row] = loop.strides(row);
  const auto [to_column, from_column] = loop.strides(column);
  const int64_t blocks = loop.numel() / (rows * columns) * row_blocks * column_blocks;
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (block_rows * block_columns));
  parallel_for(blocks, grain,
               [&, to_row = to_row, from_row = from_row, to_column = to_column,
                from_column = from_column](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t r0 = block % row_blocks * block_rows;
                   const int64_t c0 = block / row_blocks % column_blocks * block_columns;
                   int64_t rest = block / (row_blocks * column_blocks);
                   T* out = to + r0 * to_row + c0 * to_column;
                   const T* in = from + r0 * from_row + c0 * from_column;
                   for (int d = row - 1; d >= 0; --d) {
                     if (d == column) continue;
                     out += rest % loop.size(d) * loop.strides(d)[0];
                     in += rest % loop.size(d) * loop.strides(d)[1];
                     rest /= loop.size(d);
                   }
                   const int64_t r_count = std::min(block_rows, rows - r0);
                   const int64_t c_count = std::min(block_columns, columns - c0);
                   for (int64_t c = 0; c < c_count; ++c)
                     for (int64_t r = 0; r < r_count; ++r)
                       out[c * to_column + r * to_row] = in[c * from_column + r * from_row];
                 }
               });
  return true;
}

// One instantiation a size: bits are copied, whatever they mean.
template <class Bits>
static void copy_same(const AnyView& dst, const AnyView& src) {
  const StridedLoop<2> loop({&dst.layout, &src.layout});
  auto* to = static_cast<Bits*>(dst.data);
  const auto* from = static_cast<const Bits*>(src.data);
  if (copy_transposed(loop, to, from)) return;
  const auto [to_step, from_step] = loop.row_strides();
  loop.parallel(kElementwiseGrain,
                [&, to_step = to_step, from_step = from_step](const auto& at, int64_t n) {
                  Bits* out = to + at[0];
                  const Bits* in = from + at[1];
                  if (to_step == 1 && from_step == 1)
                    std::memcpy(out, in, static_cast<size_t>(n) * sizeof(Bits));
                  else
                    for (int64_t i = 0; i < n; ++i) out[i * to_step] = in[i * from_step];
                });
}

template <class To, class From>
static void copy_converting(const TensorView<To>& dst, const TensorView<const From>& src,
                            bool accumulate) {
  using C = Compute<To>;
  const StridedLoop<2> loop({&dst.layout, &src.layout});
  const auto [to_step, from_step] = loop.row_strides();
  loop.parallel(
      kElementwiseGrain, [&, to_step = to_step, from_step = from_step](const auto& at, int64_t n) {
        C tile[cpu::kTile];
        C old_tile[cpu::kTile];
        Compute<From> from_tile[cpu::kTile];
        for (int64_t first = 0; first < n; first += cpu::kTile) {
          const int64_t count = std::min(cpu::kTile, n - first);
          To* to = dst.data + at[0] + first * to_step;
          const Compute<From>* x =
              cpu::load_tile(src.data + at[1] + first * from_step, from_step, count, from_tile);
          C* y = cpu::tile_target(to, to_step, tile);
          if (accumulate) {
            const C* old = cpu::load_tile<To>(to, to_step, count, old_tile);
#pragma GCC ivdep
            for (int64_t i = 0; i < count; ++i) y[i] = static_cast<C>(old[i] + convert<C>(x[i]));
          } else {
#pragma GCC ivdep
            for (int64_t i = 0; i < count; ++i) {
              if constexpr (SmallFloat<To> && std::is_same_v<From, double>)
                y[i] = round_to_odd(x[i]);
              else
                y[i] = convert_saturating<C>(x[i]);
            }
          }
          cpu::store_tile(y, to, to_step, count);
        }
      });
}

static void kernel(const CopyArgs& a) {
  if (a.dst.layout.numel() == 0) return;
  if (a.dst.dtype == a.src.dtype && !a.accumulate) {
    switch (size_of(a.dst.dtype)) {
      case 1: return copy_same<uint8_t>(a.dst, a.src);
      case 2: return copy_same<uint16_t>(a.dst, a.src);
      case 4: return copy_same<uint32_t>(a.dst, a.src);
      default: return copy_same<uint64_t>(a.dst, a.src);
    }
  }
  visit_dtype(a.dst.dtype, [&]<class To>(TypeTag<To>) {
    visit_dtype(a.src.dtype, [&]<class From>(TypeTag<From>) {
      copy_converting<To, From>(a.dst.as<To>(), a.src.as<const From>(), a.accumulate);
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
