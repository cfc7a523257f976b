// SPDX-License-Identifier: Apache-2.0
// Gradients all at once: sums of squares, unscaling, the clipping factor, the loss scale's state.
#include <cmath>

#include "device/many.cuh"
#include "device/reduce.cuh"
#include "gable/ops/optimizer.hpp"
#include "kernel.hpp"
#include "runtime/scratch.hpp"
#include "runtime/staging.hpp"

namespace gable {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlockElements = int64_t{kThreads} * 32;

template <class C>
struct Gradient {
  C* data;
  int64_t count;
};

// Sums of squares of fixed pieces, a block each.
template <class C>
__global__ void __launch_bounds__(kThreads)
    square_sum_kernel(const Many<Gradient<const C>> many, double* partial) {
  const int item = many.item_of(blockIdx.x);
  const Gradient<const C>& g = many.items[item];
  const int64_t begin = (blockIdx.x - many.first_block(item)) * kBlockElements;
  const int64_t end = begin + kBlockElements < g.count ? begin + kBlockElements : g.count;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const auto x = static_cast<double>(g.data[i]);
    sum += x * x;
  }
  sum = block_reduce(sum, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

struct Pieces {
  double* out;
};

// One block a gradient adds its pieces up.
__global__ void __launch_bounds__(kThreads)
    square_sum_finish_kernel(const Many<Pieces> many, const double* partial) {
  const int item = static_cast<int>(blockIdx.x);
  const uint32_t end = many.ends[item];
  double sum = 0;
  for (uint32_t i = many.first_block(item) + threadIdx.x; i < end; i += kThreads) sum += partial[i];
  sum = block_reduce(sum, Add{});
  if (threadIdx.x == 0) *many.items[item].out = sum;
}

template <class C>
__global__ void __launch_bounds__(kThreads)
    unscale_kernel(const Many<Gradient<C>> many, const float* scale, float* found_inf) {
  const int item = many.item_of(blockIdx.x);
  const Gradient<C>& g = many.items[item];
  const auto inverse = static_cast<C>(1.0 / static_cast<double>(*scale));
  const int64_t begin = (blockIdx.x - many.first_block(item)) * kBlockElements;
  const int64_t end = begin + kBlockElements < g.count ? begin + kBlockElements : g.count;
  bool finite = true;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const C x = g.data[i] * inverse;
    g.data[i] = x;
    finite &= x - x == C(0);
  }
  if (!__syncthreads_and(finite) && threadIdx.x == 0) atomicExch(found_inf, 1.0F);
}

__global__ void clip_factor_kernel(const double* sums, int64_t stride, int64_t count,
                                   const float* scale, double max_norm, double* norm, float* factor,
                                   float* found_inf) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += sums[i * stride];
  sum = block_reduce(sum, Add{});
  if (threadIdx.x != 0) return;
  const double before = scale != nullptr ? static_cast<double>(*scale) : 1.0;
  const double n = sqrt(sum) * fabs(before);
  const bool finite = isfinite(n);
  const double f = max_norm / (n + 1e-6);
  *norm = n;
  *factor = static_cast<float>(finite && f < 1 ? before * f : before);
  *found_inf = finite ? 0.0F : 1.0F;
}

__global__ void scaler_update_kernel(float* scale, float* found_inf, int64_t* streak,
                                     int64_t* taken, int64_t* skipped, double growth,
                                     double backoff, int64_t interval) {
  const bool found = *found_inf != 0;
  *found_inf = 0;
  if (found) {
    *scale = static_cast<float>(static_cast<double>(*scale) * backoff);
    *streak = 0;
    ++*skipped;
    return;
  }
  ++*taken;
  if (++*streak < interval) return;
  *streak = 0;
  const auto grown = static_cast<float>(static_cast<double>(*scale) * growth);
  if (isfinite(grown)) *scale = grown;
}

int64_t blocks_of(int64_t count) { return (count + kBlockElements - 1) / kBlockElements; }

}  // namespace
}  // namespace cuda

template <class C>
static void kernel(const ManyArgs<SquareSumArgs<C>>& args, const Stream& stream) {
  using cuda::Gradient;
  cuda::Staging staging(stream);
  constexpr size_t kChunk = static_cast<size_t>(cuda::Many<Gradient<const C>>::kCapacity);
  for (size_t begin = 0; begin < args.calls.size(); begin += kChunk) {
    std::vector<Gradient<const C>> items;
    std::vector<cuda::Pieces> outs;
    std::vector<int64_t> blocks;
    int64_t total = 0;
    for (const auto& a : args.calls.subspan(begin, std::min(kChunk, args.calls.size() - begin))) {
      const auto x = staging.in_order(a.x, a.x.layout.like(), false);
      items.push_back({x.data, x.numel()});
      outs.push_back({a.out.data});
      blocks.push_back(cuda::blocks_of(x.numel()));
      total += blocks.back();
    }
    const cuda::Scratch<double> partial(total, stream);
    cuda::launch_many(items, blocks, cuda::kThreads, [&](const cuda::Grid& grid, const auto& many) {
      cuda::launch(stream, grid, cuda::square_sum_kernel<C>, many, partial.data());
    });
    cuda::launch_many(outs, blocks, cuda::kThreads, [&](cuda::Grid grid, const auto& many) {
      grid.blocks = static_cast<unsigned>(many.count);
      cuda::launch(stream, grid, cuda::square_sum_finish_kernel, many,
                   static_cast<const double*>(partial.data()));
    });
  }
}
GABLE_CUDA_KERNEL(ManyArgs<SquareSumArgs<float>>)
GABLE_CUDA_KERNEL(ManyArgs<SquareSumArgs<double>>)

template <class C>
static void kernel(const ManyArgs<UnscaleArgs<C>>& args, const Stream& stream) {
  if (args.calls.empty()) return;
  cuda::Staging staging(stream);
  std::vector<cuda::Gradient<C>> items;
  std::vector<int64_t> blocks;
  for (const UnscaleArgs<C>& a : args.calls) {
    if (a.gradient.numel() == 0) continue;
    const auto g = staging.in_order(a.gradient, a.gradient.layout.like(), true);
    items.push_back({g.data, g.numel()});
    blocks.push_back(cuda::blocks_of(g.numel()));
  }
  const UnscaleArgs<C>& first = args.calls.front();
  cuda::launch_many(items, blocks, cuda::kThreads, [&](const cuda::Grid& grid, const auto& many) {
    cuda::launch(stream, grid, cuda::unscale_kernel<C>, many, first.scale.data,
                 first.found_inf.data);
  });
  staging.write_back();
}
GABLE_CUDA_KERNEL(ManyArgs<UnscaleArgs<float>>)
GABLE_CUDA_KERNEL(ManyArgs<UnscaleArgs<double>>)

static void kernel(const ClipFactorArgs& a, const Stream& stream) {
  cuda::launch(stream, {1, cuda::kThreads}, cuda::clip_factor_kernel, a.sums.data, a.sums.stride(0),
               a.sums.numel(), a.scale.data, a.max_norm, a.norm.data, a.factor.data,
               a.found_inf.data);
}
GABLE_CUDA_KERNEL(ClipFactorArgs)

static void kernel(const ScalerUpdateArgs& a, const Stream& stream) {
  cuda::launch(stream, {1, 1}, cuda::scaler_update_kernel, a.scale.data, a.found_inf.data,
               a.streak.data, a.taken.data, a.skipped.data, a.growth, a.backoff, a.interval);
}
GABLE_CUDA_KERNEL(ScalerUpdateArgs)

}  // namespace gable
