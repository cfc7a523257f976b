// SPDX-License-Identifier: Apache-2.0
// Stable sorting of lines by unsigned keys of the same order: short lines in shared memory, long
// ones by radix sort; and random permutations.
#include "gable/ops/sort.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/strided.cuh"
#include "gable/core/philox.hpp"
#include "kernel.hpp"
#include "radix_sort.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "runtime/sub_layout.hpp"

namespace gable {
namespace {

using cuda::StridedIndex;

constexpr int kThreads = 256;
constexpr int kShortLine = 2048;  // elements that a block sorts
constexpr int kBlockItems = 512;  // elements that a block takes at least

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
inline constexpr int kKeyBits = static_cast<int>(8 * sizeof(T));
template <class T>
inline constexpr SortKey<T> kLastKey = ~SortKey<T>{0} >> (8 * sizeof(SortKey<T>) - kKeyBits<T>);

// A key whose unsigned order is the wanted one of x: NaN, as kLastKey, comes last in both
// directions, and -0 equals 0.
template <class T>
__device__ __forceinline__ SortKey<T> sort_key(T x, bool descending) {
  using K = SortKey<T>;
  constexpr K sign = K{1} << (kKeyBits<T> - 1);
  K key;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>) {
    key = x;
  } else if constexpr (std::is_integral_v<T>) {
    key = static_cast<K>(x) ^ sign;
  } else {
    if constexpr (SmallFloat<T>)
      key = x.bits;
    else
      memcpy(&key, &x, sizeof(T));
    // Infinity: the exponent's bits.
    constexpr K infinity = std::is_same_v<T, double>     ? static_cast<K>(0x7ff0000000000000ULL)
                           : std::is_same_v<T, float>    ? static_cast<K>(0x7f800000U)
                           : std::is_same_v<T, bfloat16> ? static_cast<K>(0x7f80U)
                                                         : static_cast<K>(0x7c00U);
    const K magnitude = key & (sign - 1);
    if (magnitude > infinity) return kLastKey<T>;
    if (magnitude == 0) key = 0;
    key = (key & sign) != 0 ? kLastKey<T> - key : key | sign;
  }
  return descending ? kLastKey<T> - key : key;
}

// Lines of x and where their first k sorted elements go. Operands of `lines` are x, values and
// indices without the sorted dimension, in which neighbours are a step apart.
template <class T>
struct Lines {
  const T* x;
  T* values;
  int64_t* indices;
  StridedIndex<3> lines;
  int64_t x_step;
  int64_t values_step;
  int64_t indices_step;
  int64_t length;
  int64_t k;
  bool descending;

  __device__ __forceinline__ SortKey<T> key(int64_t line, int64_t i) const {
    return sort_key(x[lines.offsets(line).at[0] + i * x_step], descending);
  }
  // Element `from` of a line is the one of `rank`.
  __device__ __forceinline__ void put(int64_t line, int64_t rank, int64_t from) const {
    const cuda::Offsets<3> o = lines.offsets(line);
    values[o.at[1] + rank * values_step] = x[o.at[0] + from * x_step];
    indices[o.at[2] + rank * indices_step] = from;
  }
};

// --- kernels

// Bitonic sort (Batcher 1968) of whole lines in shared memory, each in a tile of 2^t elements; ties
// go by position, so that the result is stable. A thread has a pair of elements.
template <class T>
__global__ void __launch_bounds__(kShortLine / 2) short_kernel(const Lines<T> a, const int tile) {
  __shared__ SortKey<T> keys[kShortLine];
  __shared__ uint16_t positions[kShortLine];
  const int items = 2 * static_cast<int>(blockDim.x);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (items / tile);
  for (int e = static_cast<int>(threadIdx.x); e < items; e += static_cast<int>(blockDim.x)) {
    const int64_t line = first + e / tile;
    const int i = e % tile;
    const bool there = line < a.lines.count() && i < a.length;
    keys[e] = there ? a.key(line, i) : kLastKey<T>;  // fill is after any element of its key
    positions[e] = static_cast<uint16_t>(i);
  }
  for (int size = 2; size <= tile; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int thread = static_cast<int>(threadIdx.x);
      const int i = 2 * thread - (thread & (stride - 1));
      const int j = i + stride;
      const bool ascending = (i & (tile - 1) & size) == 0;
      const SortKey<T> ki = keys[i];
      const SortKey<T> kj = keys[j];
      const uint16_t pi = positions[i];
      const uint16_t pj = positions[j];
      const bool swapped = kj < ki || (kj == ki && pj < pi);
      if (swapped == ascending) {
        keys[i] = kj;
        keys[j] = ki;
        positions[i] = pj;
        positions[j] = pi;
      }
    }
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < items; e += static_cast<int>(blockDim.x)) {
    const int64_t line = first + e / tile;
    const int rank = e % tile;
    if (line < a.lines.count() && rank < a.k) a.put(line, rank, positions[e]);
  }
}

// Keys of all lines, below the line's number where both fit, and positions in all.
template <class T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const Lines<T> a, uint64_t* keys, int64_t* positions, const int64_t count) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (position >= count) return;
  const int64_t line = position / a.length;
  uint64_t key = a.key(line, position - line * a.length);
  if constexpr (kKeyBits<T> < 64) key |= static_cast<uint64_t>(line) << kKeyBits<T>;
  keys[position] = key;
  positions[position] = position;
}

__global__ void __launch_bounds__(kThreads)
    lines_kernel(const int64_t* positions, uint64_t* keys, const int64_t count,
                 const int64_t length) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) keys[i] = static_cast<uint64_t>(positions[i] / length);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    put_kernel(const Lines<T> a, const int64_t* positions, const int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t line = i / a.k;
  const int64_t rank = i - line * a.k;
  const int64_t begin = line * a.length;
  a.put(line, rank, positions[begin + rank] - begin);
}

// Two keys of 64 random bits and their numbers.
__global__ void __launch_bounds__(kThreads)
    random_keys_kernel(uint64_t* keys, int64_t* numbers, const int64_t count, const uint64_t seed,
                       const uint64_t offset) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (2 * i >= count) return;
  const auto bits = philox(seed, offset + static_cast<uint64_t>(i));
  keys[2 * i] = (uint64_t{bits[1]} << 32) | bits[0];
  numbers[2 * i] = 2 * i;
  if (2 * i + 1 >= count) return;
  keys[2 * i + 1] = (uint64_t{bits[3]} << 32) | bits[2];
  numbers[2 * i + 1] = 2 * i + 1;
}

// --- launchers

template <class T>
void sort_short(const Lines<T>& a, const Stream& stream) {
  const int tile = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(a.length)));
  const int items = std::max(tile, kBlockItems);
  cuda::launch(stream,
               {cuda::blocks_for(a.lines.count(), items / tile), static_cast<unsigned>(items / 2)},
               short_kernel<T>, a, tile);
}

template <class T>
void sort_long(const Lines<T>& a, const Stream& stream) {
  const int64_t lines = a.lines.count();
  const int64_t count = lines * a.length;
  const cuda::Scratch<uint64_t> keys(2 * count, stream);
  const cuda::Scratch<int64_t> positions(2 * count, stream);
  uint64_t* const other_keys = keys.data() + count;
  int64_t* const other_positions = positions.data() + count;
  const cuda::Grid grid{cuda::blocks_for(count, kThreads), kThreads};
  cuda::launch(stream, grid, keys_kernel<T>, a, keys.data(), positions.data(), count);
  const int64_t* sorted = other_positions;
  if constexpr (kKeyBits<T> < 64) {
    cuda::sort_pairs(keys.data(), other_keys, positions.data(), other_positions, count,
                     kKeyBits<T> + cuda::bits_for(lines), stream);
  } else {
    cuda::sort_pairs(keys.data(), other_keys, positions.data(), other_positions, count, 64, stream);
    if (lines > 1) {  // then by line, which keeps the order within lines
      cuda::launch(stream, grid, lines_kernel, other_positions, keys.data(), count, a.length);
      cuda::sort_pairs(keys.data(), other_keys, other_positions, positions.data(), count,
                       cuda::bits_for(lines), stream);
      sorted = positions.data();
    }
  }
  cuda::launch(stream, {cuda::blocks_for(lines * a.k, kThreads), kThreads}, put_kernel<T>, a,
               sorted, lines * a.k);
}

}  // namespace

template <class T>
static void kernel(const SortArgs<T>& args, const Stream& stream) {
  if (args.values.numel() == 0) return;
  const auto rest = [&](int d) { return d != args.dim; };
  const Layout x = cuda::sub_layout(args.x.layout, rest);
  const Layout values = cuda::sub_layout(args.values.layout, rest);
  const Layout indices = cuda::sub_layout(args.indices.layout, rest);
  const Lines<T> lines{args.x.data,
                       args.values.data,
                       args.indices.data,
                       StridedIndex<3>(StridedLoop<3>({&x, &values, &indices})),
                       args.x.stride(args.dim),
                       args.values.stride(args.dim),
                       args.indices.stride(args.dim),
                       args.x.size(args.dim),
                       args.values.size(args.dim),
                       args.descending};
  if (lines.length <= kShortLine)
    sort_short(lines, stream);
  else
    sort_long(lines, stream);
}

// The CPU's stable sort by the same keys.
static void kernel(const PermutationArgs& args, const Stream& stream) {
  const int64_t count = args.out.numel();
  if (count == 0) return;
  const cuda::Scratch<uint64_t> keys(2 * count, stream);
  const cuda::Scratch<int64_t> numbers(count, stream);
  cuda::launch(stream, {cuda::blocks_for(count, 2 * kThreads), kThreads}, random_keys_kernel,
               keys.data(), numbers.data(), count, args.seed, args.offset);
  cuda::sort_pairs(keys.data(), keys.data() + count, numbers.data(), args.out.data, count, 64,
                   stream);
}

}  // namespace gable

GABLE_CUDA_KERNEL_ALL(SortArgs)
GABLE_CUDA_KERNEL(gable::PermutationArgs)
