// SPDX-License-Identifier: Apache-2.0
// Batch norm forward: statistics and normalisation.
#include "batch_norm.cuh"

namespace gable {
namespace {

using cuda::NormGrid;
using cuda::NormPlace;
using cuda::Pack;
using cuda::TwoSums;

// --- kernels

// Mean and sum of squared deviations a channel and chunk. A thread sums at most 64 values in C,
// around the mean of its first ones; the rest is in double.
template <class T, int V>
__global__ void __launch_bounds__(cuda::kNormThreads)
    moments_kernel(const T* x, const NormGrid<1> g, TwoSums* partial) {
  using C = Compute<T>;
  constexpr int kRows = 4;
  NormPlace<1, V> at(g);
  const int64_t begin = at.chunk * g.rows;
  const int64_t mine = at.row < at.end ? (at.end - at.row - 1) / blockDim.y + 1 : 0;
  const T* from = x + at.channel * g.channel_strides[0];
  C shift[V] = {};
  C s1[V] = {};
  C s2[V] = {};
  for (bool first = true; at.row < at.end; at.row += kRows * blockDim.y, first = false) {
    Pack<T, V> packs[kRows];
    bool there[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int64_t row = at.row + k * blockDim.y;
      there[k] = row < at.end;
      if (there[k]) packs[k] = cuda::load_pack<T, V>(from + g.pixels.offsets(row).at[0]);
    }
    if (first) {
      C n = 0;
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (!there[k]) continue;
        n += C(1);
#pragma unroll
        for (int v = 0; v < V; ++v) shift[v] += cuda::widen(packs[k].values[v]);
      }
      const C scale = C(1) / n;
#pragma unroll
      for (int v = 0; v < V; ++v) shift[v] *= scale;
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (!there[k]) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C d = cuda::widen(packs[k].values[v]) - shift[v];
        s1[v] += d;
        s2[v] += d * d;
      }
    }
  }
  // Sums around the shift of row 0, which all rows of a channel share.
  __shared__ C base[V][32];
  if (threadIdx.y == 0) {
#pragma unroll
    for (int v = 0; v < V; ++v) base[v][threadIdx.x] = shift[v];
  }
  __syncthreads();
  double first[V];
  double second[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const auto n = static_cast<double>(mine);
    const auto sum = static_cast<double>(s1[v]);
    const double move =
        mine > 0 ? static_cast<double>(shift[v]) - static_cast<double>(base[v][threadIdx.x]) : 0;
    first[v] = sum + n * move;
    second[v] = static_cast<double>(s2[v]) + move * (2 * sum + n * move);
  }
  cuda::sum_rows(first, second);
  if (threadIdx.y != 0 || at.channel >= g.channels) return;
  const auto n = static_cast<double>(at.end - begin);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const double m2 = second[v] - first[v] * first[v] / n;
    partial[at.chunk * g.channels + at.channel + v] = {static_cast<double>(shift[v]) + first[v] / n,
                                                       m2 > 0 || m2 != m2 ? m2 : 0.0};
  }
}

template <class C>
struct Statistics {
  double* mean;
  C* rstd;
  C* running_mean;
  C* running_var;
  double momentum;
  double eps;
};

// Chunks together: first the mean, then the deviations from it.
template <class C>
__global__ void __launch_bounds__(cuda::kFinishChannels* cuda::kFinishLanes)
    finish_kernel(const TwoSums* partial, const int64_t chunks, const int64_t rows,
                  const int64_t count, const int64_t channels, const Statistics<C> out) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * cuda::kFinishChannels + threadIdx.x;
  const bool inside = c < channels;
  const int64_t stop = inside ? chunks : 0;
  auto values = [&](int64_t chunk) {
    return chunk == chunks - 1 ? static_cast<double>(count - chunk * rows)
                               : static_cast<double>(rows);
  };
  const double base = stop > 0 ? partial[c].first : 0;
  double sum = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < stop; i += cuda::kFinishLanes)
    sum += values(i) * (partial[i * channels + c].first - base);
  const double mean = base + cuda::sum_lanes(sum) / static_cast<double>(count);
  double squares = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < stop; i += cuda::kFinishLanes) {
    const TwoSums chunk = partial[i * channels + c];
    const double d = chunk.first - mean;
    squares += chunk.second + values(i) * d * d;
  }
  const double m2 = cuda::sum_lanes(squares);
  if (threadIdx.y != 0 || !inside) return;
  const auto n = static_cast<double>(count);
  out.mean[c] = mean;
  out.rstd[c] = static_cast<C>(1 / ::sqrt(m2 / n + out.eps));
  if (out.running_mean == nullptr) return;
  auto move = [&](C& value, double batch) {
    value = static_cast<C>((1 - out.momentum) * static_cast<double>(value) + out.momentum * batch);
  };
  move(out.running_mean[c], mean);
  move(out.running_var[c], m2 / (n - 1));
}

template <class T>
struct Normalisation {
  T* y;
  const T* x;
  const double* mean;
  const Compute<T>* rstd;
  const Compute<T>* gamma;
  const Compute<T>* beta;
};

template <class T, int V>
__global__ void __launch_bounds__(cuda::kNormThreads)
    apply_kernel(const Normalisation<T> a, const NormGrid<2> g) {
  using C = Compute<T>;
  constexpr int kRows = 4;
  NormPlace<2, V> at(g);
  if (at.row >= at.end) return;
  cuda::TwoPart<C> mean[V];
  C scale[V];
  C shift[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const int64_t c = at.channel + v;
    mean[v] = cuda::TwoPart<C>(a.mean[c]);
    scale[v] = a.gamma != nullptr ? a.rstd[c] * a.gamma[c] : a.rstd[c];
    shift[v] = a.beta != nullptr ? a.beta[c] : C(0);
  }
  T* to = a.y + at.channel * g.channel_strides[0];
  const T* from = a.x + at.channel * g.channel_strides[1];
  for (; at.row < at.end; at.row += kRows * blockDim.y) {
    Pack<T, V> packs[kRows];
    int64_t target[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int64_t row = at.row + k * blockDim.y;
      if (row >= at.end) continue;
      const cuda::Offsets<2> o = g.pixels.offsets(row);
      target[k] = o.at[0];
      packs[k] = cuda::load_pack<T, V>(from + o.at[1]);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (at.row + k * blockDim.y >= at.end) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C x = mean[v].from(cuda::widen(packs[k].values[v]));
        packs[k].values[v] = cuda::narrow<T>(x * scale[v] + shift[v]);
      }
      cuda::store_pack<T, V>(to + target[k], packs[k]);
    }
  }
}

}  // namespace

// --- launchers

template <class T>
static void kernel(const BatchNormStatsArgs<T>& a, const Stream& stream) {
  using C = Compute<T>;
  const auto g =
      cuda::norm_grid<T, 1>({&a.x.layout}, {a.x.data}, {.least = 4, .most = 64, .blocks = 528});
  if (g.channels == 0) return;
  const cuda::Scratch<TwoSums> partial(g.chunks * g.channels, stream);
  cuda::launch(stream, g.grid(),
               g.packed ? moments_kernel<T, cuda::kPackSize<T>> : moments_kernel<T, 1>, a.x.data, g,
               partial.data());
  const Statistics<C> out{a.mean.data,        a.rstd.data, a.running_mean.data,
                          a.running_var.data, a.momentum,  a.eps};
  cuda::launch(stream, cuda::finish_grid(g.channels), finish_kernel<C>, partial.data(), g.chunks,
               g.rows, g.count, g.channels, out);
}

template <class T>
static void kernel(const BatchNormApplyArgs<T>& a, const Stream& stream) {
  if (a.x.numel() == 0) return;
  const auto g = cuda::norm_grid<T, 2>({&a.y.layout, &a.x.layout}, {a.y.data, a.x.data},
                                       {.least = 4, .most = 16, .blocks = 1056});
  const Normalisation<T> arguments{a.y.data,    a.x.data,     a.mean.data,
                                   a.rstd.data, a.gamma.data, a.beta.data};
  cuda::launch(stream, g.grid(),
               g.packed ? apply_kernel<T, cuda::kPackSize<T>> : apply_kernel<T, 1>, arguments, g);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(BatchNormStatsArgs)
GABLE_CUDA_KERNEL_FLOATS(BatchNormApplyArgs)
