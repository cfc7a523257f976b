// SPDX-License-Identifier: Apache-2.0
// gather, index_select, one_hot. An index out of range reads nothing and gives 0; the range check
// before has recorded it.
#include "gable/ops/index.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "kernel.hpp"
#include "runtime/launch.hpp"

namespace gable {
namespace {

using cuda::Pack;
using cuda::StridedIndex;

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // positions a thread

// --- kernels

// Elements are moved as raw units, one or more elements each. Operands are out, index and x
// without its indexed dimension, in which neighbours are `step` elements apart.
template <class Unit>
__global__ void __launch_bounds__(kThreads)
    pick_kernel(char* out, const int64_t* index, const char* x, const StridedIndex<3> at,
                const int64_t element, const int64_t step, const int64_t bound) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x;
  cuda::Offsets<3> o[kUnroll];
  int64_t row[kUnroll];
  Unit unit[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t position = first + u * kThreads;
    row[u] = -1;
    if (position >= at.count()) continue;
    o[u] = at.offsets(position);
    row[u] = index[o[u].at[1]];
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    unit[u] = {};
    if (row[u] < 0 || row[u] >= bound) continue;
    unit[u] = *reinterpret_cast<const Unit*>(x + (o[u].at[2] + row[u] * step) * element);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (first + u * kThreads < at.count())
      *reinterpret_cast<Unit*>(out + o[u].at[0] * element) = unit[u];
}

// Operands are out, index and the class's number, which is not memory. Packs run over classes.
template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    one_hot_kernel(T* out, const int64_t* index, const StridedIndex<3> at) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (position >= at.count()) return;
  const cuda::Offsets<3> o = at.offsets(position);
  const int64_t hot = index[o.at[1]] - o.at[2];
  Pack<T, V> pack;
#pragma unroll
  for (int v = 0; v < V; ++v) pack.values[v] = hot == v ? convert<T>(1) : T{};
  *reinterpret_cast<Pack<T, V>*>(out + o.at[0]) = pack;
}

// --- launchers

// `index` in out's shape, where only dimension `dim` moves it.
Layout along(const Shape& shape, int dim, int64_t stride) {
  Strides strides(shape);
  for (int d = 0; d < shape.size(); ++d) strides[d] = d == dim ? stride : 0;
  return Layout(shape, strides, 0, "index");
}

// What pick_kernel runs on.
struct Pick {
  StridedLoop<3> loop;
  void* out;
  const int64_t* index;
  const void* x;
  int64_t element;
  int64_t step;
  int64_t bound;

  // Whether rows can be moved in units of `width` elements.
  [[nodiscard]] bool fits(int64_t width) const {
    const auto& row = loop.row_strides();
    if (width == 1) return true;
    bool good = row[0] == 1 && row[1] == 0 && row[2] == 1 && loop.row_length() % width == 0;
    const auto bytes = static_cast<uintptr_t>(width * element);
    good &= reinterpret_cast<uintptr_t>(out) % bytes == 0 &&
            reinterpret_cast<uintptr_t>(x) % bytes == 0 && step % width == 0;
    for (int d = 0; d + 1 < loop.rank(); ++d)
      good &= loop.strides(d)[0] % width == 0 && loop.strides(d)[2] % width == 0;
    return good;
  }

  template <class Unit>
  void run(const Stream& stream) const {
    const StridedIndex<3> at(loop, static_cast<int64_t>(sizeof(Unit)) / element);
    cuda::launch(stream, {cuda::blocks_for(at.count(), kThreads * kUnroll), kThreads},
                 pick_kernel<Unit>, static_cast<char*>(out), index, static_cast<const char*>(x), at,
                 element, step, bound);
  }
};

// By the size of the elements, so that types share kernels.
void pick(const Pick& p, const Stream& stream) {
  if (p.loop.numel() == 0) return;
  int64_t unit = 16;
  while (unit > p.element && !p.fits(unit / p.element)) unit /= 2;
  switch (unit) {
    case 16: return p.run<Pack<uint32_t, 4>>(stream);
    case 8: return p.run<uint64_t>(stream);
    case 4: return p.run<uint32_t>(stream);
    case 2: return p.run<uint16_t>(stream);
    default: return p.run<uint8_t>(stream);
  }
}

template <class Args>
void pick(const Args& a, const Layout& index, const Stream& stream) {
  Strides strides = a.x.layout.strides();
  strides[a.dim] = 0;
  const Layout x(a.out.shape(), strides, 0, Args::name);
  pick(Pick{StridedLoop<3>({&a.out.layout, &index, &x}), a.out.data, a.index.data, a.x.data,
            static_cast<int64_t>(sizeof(*a.x.data)), a.x.stride(a.dim), a.x.size(a.dim)},
       stream);
}

}  // namespace

template <class T>
static void kernel(const GatherArgs<T>& a, const Stream& stream) {
  pick(a, a.index.layout, stream);
}

template <class T>
static void kernel(const IndexSelectArgs<T>& a, const Stream& stream) {
  pick(a, along(a.out.shape(), a.dim, a.index.stride(0)), stream);
}

template <class T>
static void kernel(const OneHotArgs<T>& a, const Stream& stream) {
  const Shape& shape = a.out.shape();
  const int last = a.out.rank() - 1;
  Strides strides = a.index.layout.strides();
  strides.push_back(0);
  const Layout index(shape, strides, 0, OneHotArgs<T>::name);
  const Layout number = along(shape, last, 1);
  const StridedLoop<3> loop({&a.out.layout, &index, &number});
  if (loop.numel() == 0) return;
  constexpr int width = std::min(cuda::kPackSize<T>, 8);
  const auto& row = loop.row_strides();
  bool packed = row[0] == 1 && row[1] == 0 && row[2] == 1 && loop.row_length() % width == 0 &&
                reinterpret_cast<uintptr_t>(a.out.data) % (sizeof(T) * width) == 0;
  for (int d = 0; d + 1 < loop.rank(); ++d) packed &= loop.strides(d)[0] % width == 0;
  const StridedIndex<3> at(loop, packed ? width : 1);
  cuda::launch(stream, {cuda::blocks_for(at.count(), kThreads), kThreads},
               packed ? one_hot_kernel<T, width> : one_hot_kernel<T, 1>, a.out.data, a.index.data,
               at);
}

}  // namespace gable

GABLE_CUDA_KERNEL_ALL(GatherArgs)
GABLE_CUDA_KERNEL_ALL(IndexSelectArgs)
GABLE_CUDA_KERNEL_ALL(OneHotArgs)
