// SPDX-License-Identifier: Apache-2.0
// scatter_add and index_add. Additions to one element happen in ascending order of their indices,
// as on the CPU, so results have the same bits every time. Either a thread owns a column of the
// target and walks the indices in order, or, for long index lists over few columns, a stable
// sort brings equal targets together and a thread owns a run of them. There are no atomics.
#include <algorithm>
#include <cstdint>

#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "gable/ops/index.hpp"
#include "kernel.hpp"
#include "radix_sort.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "runtime/sub_layout.hpp"

namespace gable {
namespace {

using cuda::Pack;
using cuda::StridedIndex;

constexpr int kThreads = 256;
constexpr int kAhead = 4;               // additions whose operands are loaded at once
constexpr int64_t kShortList = 64;      // indices that a thread walks faster than they are sorted
constexpr int64_t kManyColumns = 8192;  // columns that fill the device

// out[column, index[column, i]] += src[column, i] for i < length. Operands of `columns` are out,
// src and index without the indexed dimension, in which neighbours are a step apart.
template <class T>
struct Additions {
  Compute<T>* out;
  const T* src;
  const int64_t* index;
  StridedIndex<3> columns;
  int64_t out_step;
  int64_t src_step;
  int64_t index_step;
  int64_t length;
  int64_t bound;    // indices out of [0, bound) are passed over; they have been recorded
  int64_t skipped;  // as is this one; -1: none

  __device__ __forceinline__ bool takes(int64_t row) const {
    return row >= 0 && row < bound && row != skipped;
  }
};

template <class T>
__device__ __forceinline__ void add(Compute<T>& sum, T value) {
  sum = detail::wrap_add(sum, cuda::widen(value));
}

// --- kernels

// A thread walks a column.
template <class T>
__global__ void __launch_bounds__(kThreads) column_kernel(const Additions<T> a) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= a.columns.count()) return;
  const cuda::Offsets<3> o = a.columns.offsets(column);
  for (int64_t i = 0; i < a.length; i += kAhead) {
    int64_t row[kAhead];
    T value[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      row[k] = -1;
      if (i + k >= a.length) continue;
      row[k] = a.index[o.at[2] + (i + k) * a.index_step];
      value[k] = a.src[o.at[1] + (i + k) * a.src_step];
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (a.takes(row[k])) add<T>(a.out[o.at[0] + row[k] * a.out_step], value[k]);
  }
}

// Keys of the additions: column * bound + row, or the row only where columns share their index
// list; the largest key, `none`, for those to pass over. Values are column * length + i.
template <class T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const Additions<T> a, uint64_t* keys, int64_t* values, const int64_t count,
                const int64_t none) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (position >= count) return;
  const int64_t column = position / a.length;
  const int64_t i = position - column * a.length;
  const int64_t row = a.index[a.columns.offsets(column).at[2] + i * a.index_step];
  keys[position] = static_cast<uint64_t>(a.takes(row) ? column * a.bound + row : none);
  values[position] = position;
}

// A thread sums the run of equal keys that begins at its position, for V columns at once where
// columns share their index list.
template <class T, int V, bool kShared>
__global__ void __launch_bounds__(kThreads)
    runs_kernel(const Additions<T> a, const uint64_t* keys, const int64_t* values,
                const int64_t count, const int64_t none) {
  using C = Compute<T>;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t slices = kShared ? a.columns.count() : 1;
  const int64_t begin = thread / slices;
  if (begin >= count) return;
  const uint64_t key = keys[begin];
  if (key == static_cast<uint64_t>(none) || (begin > 0 && keys[begin - 1] == key)) return;
  const int64_t group = kShared ? 0 : static_cast<int64_t>(key) / a.bound;
  const int64_t row = static_cast<int64_t>(key) - group * a.bound;
  const cuda::Offsets<3> o = a.columns.offsets(kShared ? thread - begin * slices : group);
  auto* to = reinterpret_cast<Pack<C, V>*>(a.out + o.at[0] + row * a.out_step);
  const T* from = a.src + o.at[1];
  Pack<C, V> sum = *to;
  for (int64_t at = begin;; at += kAhead) {
    Pack<T, V> packs[kAhead];
    bool same[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      same[k] = at + k < count && keys[at + k] == key;
      if (!same[k]) continue;
      const int64_t i = values[at + k] - group * a.length;
      packs[k] = *reinterpret_cast<const Pack<T, V>*>(from + i * a.src_step);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (!same[k]) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) add<T>(sum.values[v], packs[k].values[v]);
    }
    if (!same[kAhead - 1]) break;
  }
  *to = sum;
}

// --- launchers

template <class T>
void walk_columns(const Additions<T>& a, const Stream& stream) {
  cuda::launch(stream, {cuda::blocks_for(a.columns.count(), kThreads), kThreads}, column_kernel<T>,
               a);
}

// `packed` are the additions with columns counted in packs of V.
template <int V, bool kShared, class T>
void sum_runs(const Additions<T>& a, const Additions<T>& packed, const Stream& stream) {
  const int64_t groups = kShared ? 1 : a.columns.count();
  const int64_t count = groups * a.length;
  const int64_t none = groups * a.bound;
  const cuda::Scratch<uint64_t> keys(2 * count, stream);
  const cuda::Scratch<int64_t> values(2 * count, stream);
  cuda::launch(stream, {cuda::blocks_for(count, kThreads), kThreads}, keys_kernel<T>, a,
               keys.data(), values.data(), count, none);
  cuda::sort_pairs(keys.data(), keys.data() + count, values.data(), values.data() + count, count,
                   cuda::bits_for(none + 1), stream);
  const int64_t threads = count * (kShared ? packed.columns.count() : 1);
  cuda::launch(stream, {cuda::blocks_for(threads, kThreads), kThreads}, runs_kernel<T, V, kShared>,
               packed, keys.data() + count, values.data() + count, count, none);
}

}  // namespace

template <class T>
static void kernel(const ScatterAddArgs<T>& a, const Stream& stream) {
  const auto rest = [&](int d) { return d != a.dim; };
  const Layout index = cuda::sub_layout(a.index.layout, rest);
  // out and src may be larger than index.
  const Layout out(index.shape(), cuda::sub_layout(a.out.layout, rest).strides(), 0, "scatter_add");
  const Layout src(index.shape(), cuda::sub_layout(a.src.layout, rest).strides(), 0, "scatter_add");
  const StridedLoop<3> columns({&out, &src, &index});
  const int64_t length = a.index.size(a.dim);
  if (columns.numel() == 0 || length == 0) return;
  const Additions<T> additions{a.out.data,
                               a.src.data,
                               a.index.data,
                               StridedIndex<3>(columns),
                               a.out.stride(a.dim),
                               a.src.stride(a.dim),
                               a.index.stride(a.dim),
                               length,
                               a.out.size(a.dim),
                               -1};
  if (length <= kShortList || columns.numel() >= kManyColumns)
    walk_columns(additions, stream);
  else
    sum_runs<1, false>(additions, additions, stream);
}

template <class T>
static void kernel(const IndexAddArgs<T>& a, const Stream& stream) {
  using C = Compute<T>;
  const auto rest = [&](int d) { return d != a.dim; };
  const Layout out = cuda::sub_layout(a.out.layout, rest);
  const Layout src = cuda::sub_layout(a.src.layout, rest);
  Strides none(out.strides());
  for (int d = 0; d < out.rank(); ++d) none[d] = 0;
  const Layout index(out.shape(), none, 0, "index_add");  // all columns have the same
  const StridedLoop<3> columns({&out, &src, &index});
  if (columns.numel() == 0 || a.index.numel() == 0) return;
  const Additions<T> additions{a.out.data,          a.src.data,
                               a.index.data,        StridedIndex<3>(columns),
                               a.out.stride(a.dim), a.src.stride(a.dim),
                               a.index.stride(0),   a.index.numel(),
                               a.out.size(a.dim),   a.skipped.value_or(-1)};
  if (additions.length <= kShortList) return walk_columns(additions, stream);
  constexpr int width = cuda::kPackSize<C>;
  const auto& row = columns.row_strides();
  bool packed = row[0] == 1 && row[1] == 1 && columns.row_length() % width == 0 &&
                additions.out_step % width == 0 && additions.src_step % width == 0 &&
                reinterpret_cast<uintptr_t>(a.out.data) % (sizeof(C) * width) == 0 &&
                reinterpret_cast<uintptr_t>(a.src.data) % (sizeof(T) * width) == 0;
  for (int d = 0; d + 1 < columns.rank(); ++d)
    packed &= columns.strides(d)[0] % width == 0 && columns.strides(d)[1] % width == 0;
  if (packed) {
    Additions<T> wide = additions;
    wide.columns = StridedIndex<3>(columns, width);
    sum_runs<width, true>(additions, wide, stream);
  } else {
    sum_runs<1, true>(additions, additions, stream);
  }
}

}  // namespace gable

GABLE_CUDA_KERNEL_NUMERIC(ScatterAddArgs)
GABLE_CUDA_KERNEL_FLOATS(IndexAddArgs)
