// SPDX-License-Identifier: Apache-2.0
// Batch norm backward: sums a channel, then the input's gradient.
#include "batch_norm.cuh"

namespace gable {
namespace {

using cuda::NormGrid;
using cuda::NormPlace;
using cuda::Pack;
using cuda::TwoSums;

// --- kernels

// Sums of dy and dy (x - mean) a channel and chunk; a thread sums at most 64 values in C. Operands
// are x and dy.
template <class T, int V>
__global__ void __launch_bounds__(cuda::kNormThreads)
    sums_kernel(const T* x, const T* dy, const double* mean, const NormGrid<2> g,
                TwoSums* partial) {
  using C = Compute<T>;
  constexpr int kRows = V > 1 ? 2 : 4;
  NormPlace<2, V> at(g);
  cuda::TwoPart<C> center[V];
  if (at.row < at.end) {
#pragma unroll
    for (int v = 0; v < V; ++v) center[v] = cuda::TwoPart<C>(mean[at.channel + v]);
  }
  x += at.channel * g.channel_strides[0];
  dy += at.channel * g.channel_strides[1];
  C s1[V] = {};
  C s2[V] = {};
  for (; at.row < at.end; at.row += kRows * blockDim.y) {
    Pack<T, V> xs[kRows];
    Pack<T, V> dys[kRows];
    bool there[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int64_t row = at.row + k * blockDim.y;
      there[k] = row < at.end;
      if (!there[k]) continue;
      const cuda::Offsets<2> o = g.pixels.offsets(row);
      xs[k] = cuda::load_pack<T, V>(x + o.at[0]);
      dys[k] = cuda::load_pack<T, V>(dy + o.at[1]);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (!there[k]) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C d = cuda::widen(dys[k].values[v]);
        s1[v] += d;
        s2[v] += d * center[v].from(cuda::widen(xs[k].values[v]));
      }
    }
  }
  double first[V];
  double second[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    first[v] = static_cast<double>(s1[v]);
    second[v] = static_cast<double>(s2[v]);
  }
  cuda::sum_rows(first, second);
  if (threadIdx.y != 0 || at.channel >= g.channels) return;
#pragma unroll
  for (int v = 0; v < V; ++v)
    partial[at.chunk * g.channels + at.channel + v] = {first[v], second[v]};
}

// dx = scale dy + slope (x - mean) + shift.
template <class C>
struct alignas(4 * sizeof(C)) Coefficients {
  C scale;
  C slope;
  C shift;
  C unused;
};

template <class C>
struct Finish {
  C* dgamma;
  C* dbeta;
  Coefficients<C>* coefficients;  ///< (C); null: not wanted
  const C* rstd;
  const C* gamma;
  bool training;
};

template <class C>
__global__ void __launch_bounds__(cuda::kFinishChannels* cuda::kFinishLanes)
    finish_kernel(const TwoSums* partial, const int64_t chunks, const int64_t count,
                  const int64_t channels, const Finish<C> out) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * cuda::kFinishChannels + threadIdx.x;
  double first = 0;
  double second = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.y; i < (c < channels ? chunks : 0); i += cuda::kFinishLanes) {
    const TwoSums sums = partial[i * channels + c];
    first += sums.first;
    second += sums.second;
  }
  first = cuda::sum_lanes(first);
  second = cuda::sum_lanes(second);
  if (threadIdx.y != 0 || c >= channels) return;
  const auto rstd = static_cast<double>(out.rstd[c]);
  out.dbeta[c] = static_cast<C>(first);
  out.dgamma[c] = static_cast<C>(second * rstd);
  if (out.coefficients == nullptr) return;
  const double factor = out.gamma != nullptr ? rstd * static_cast<double>(out.gamma[c]) : rstd;
  Coefficients<C> k{static_cast<C>(factor), C(0), C(0), C(0)};
  if (out.training) {
    const auto n = static_cast<double>(count);
    k.slope = static_cast<C>(-factor * rstd * rstd * second / n);
    k.shift = static_cast<C>(-factor * first / n);
  }
  out.coefficients[c] = k;
}

// Operands are dx, x, dy.
template <class T, int V>
__global__ void __launch_bounds__(cuda::kNormThreads)
    gradient_kernel(T* dx, const T* x, const T* dy, const double* mean,
                    const Coefficients<Compute<T>>* coefficients, const NormGrid<3> g) {
  using C = Compute<T>;
  constexpr int kRows = V > 1 ? 2 : 4;
  NormPlace<3, V> at(g);
  if (at.row >= at.end) return;
  cuda::TwoPart<C> center[V];
  Coefficients<C> coefficient[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    center[v] = cuda::TwoPart<C>(mean[at.channel + v]);
    coefficient[v] = coefficients[at.channel + v];
  }
  dx += at.channel * g.channel_strides[0];
  x += at.channel * g.channel_strides[1];
  dy += at.channel * g.channel_strides[2];
  for (; at.row < at.end; at.row += kRows * blockDim.y) {
    Pack<T, V> xs[kRows];
    Pack<T, V> dys[kRows];
    int64_t target[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int64_t row = at.row + k * blockDim.y;
      if (row >= at.end) continue;
      const cuda::Offsets<3> o = g.pixels.offsets(row);
      target[k] = o.at[0];
      xs[k] = cuda::load_pack<T, V>(x + o.at[1]);
      dys[k] = cuda::load_pack<T, V>(dy + o.at[2]);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (at.row + k * blockDim.y >= at.end) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const Coefficients<C>& f = coefficient[v];
        const C d = center[v].from(cuda::widen(xs[k].values[v]));
        xs[k].values[v] =
            cuda::narrow<T>(cuda::widen(dys[k].values[v]) * f.scale + d * f.slope + f.shift);
      }
      cuda::store_pack<T, V>(dx + target[k], xs[k]);
    }
  }
}

}  // namespace

// --- launchers

template <class T>
static void kernel(const BatchNormBackwardArgs<T>& a, const Stream& stream) {
  using C = Compute<T>;
  const auto g = cuda::norm_grid<T, 2>({&a.x.layout, &a.dy.layout}, {a.x.data, a.dy.data},
                                       {.least = 4, .most = 64, .blocks = 528});
  if (g.channels == 0) return;
  const bool wanted = a.dx.data != nullptr && a.dx.numel() > 0;
  const cuda::Scratch<TwoSums> partial(g.chunks * g.channels, stream);
  const cuda::Scratch<Coefficients<C>> coefficients(wanted ? g.channels : 0, stream);
  cuda::launch(stream, g.grid(), g.packed ? sums_kernel<T, cuda::kPackSize<T>> : sums_kernel<T, 1>,
               a.x.data, a.dy.data, a.mean.data, g, partial.data());
  const Finish<C> out{a.dgamma.data, a.dbeta.data, wanted ? coefficients.data() : nullptr,
                      a.rstd.data,   a.gamma.data, a.training};
  cuda::launch(stream, cuda::finish_grid(g.channels), finish_kernel<C>, partial.data(), g.chunks,
               g.count, g.channels, out);
  if (!wanted) return;
  const auto all = cuda::norm_grid<T, 3>({&a.dx.layout, &a.x.layout, &a.dy.layout},
                                         {a.dx.data, a.x.data, a.dy.data},
                                         {.least = 4, .most = 16, .blocks = 1056});
  cuda::launch(stream, all.grid(),
               all.packed ? gradient_kernel<T, cuda::kPackSize<T>> : gradient_kernel<T, 1>,
               a.dx.data, a.x.data, a.dy.data, a.mean.data, coefficients.data(), all);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(BatchNormBackwardArgs)
