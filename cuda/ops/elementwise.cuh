// SPDX-License-Identifier: Apache-2.0
// The elementwise kernels of elementwise_list.hpp; included by a file a dtype and direction, so
// that each compiles fast.
#pragma once

#include "device/elementwise.cuh"
#include "gable/ops/elementwise.hpp"
#include "kernel.hpp"

namespace gable {
namespace cuda {

template <class F>
struct UnaryForward {
  F f;
  template <class Out, class In>
  __device__ __forceinline__ void operator()(Out& out, In x) const {
    out = f.fwd(x);
  }
};
template <class F>
struct UnaryBackward {
  F f;
  template <class V>
  __device__ __forceinline__ void operator()(V& dx, V dy, V saved) const {
    dx = f.bwd(saved, dy);
  }
};
template <class F>
struct BinaryForward {
  F f;
  template <class Out, class In>
  __device__ __forceinline__ void operator()(Out& out, In a, In b) const {
    out = f.fwd(a, b);
  }
};
template <class F>
struct BinaryBackward {
  F f;
  template <class V>
  __device__ __forceinline__ void operator()(V& da, V& db, V dy, V a, V b) const {
    const auto both = f.bwd(a, b, dy);
    da = both.first;
    db = both.second;
  }
};

template <class T>
void* address(const TensorView<T>& view) {
  return const_cast<void*>(static_cast<const void*>(view.data));
}

}  // namespace cuda

template <class F, class T, class Out>
static void kernel(const UnaryArgs<F, T, Out>& args, const Stream& stream) {
  const StridedLoop<2> loop({&args.out.layout, &args.in.layout});
  cuda::elementwise<TypeList<Out>, TypeList<T>>(
      stream, loop, cuda::Addresses<2>{{cuda::address(args.out), cuda::address(args.in)}},
      cuda::UnaryForward<F>{args.f});
}

template <class F, class T>
static void kernel(const UnaryBackwardArgs<F, T>& args, const Stream& stream) {
  const TensorView<const T>& saved = F::save != Save::nothing ? args.saved : args.dy;
  const StridedLoop<3> loop({&args.dx.layout, &args.dy.layout, &saved.layout});
  cuda::elementwise<TypeList<T>, TypeList<T, T>>(
      stream, loop,
      cuda::Addresses<3>{{cuda::address(args.dx), cuda::address(args.dy), cuda::address(saved)}},
      cuda::UnaryBackward<F>{args.f});
}

template <class F, class T, class Out>
static void kernel(const BinaryArgs<F, T, Out>& args, const Stream& stream) {
  const StridedLoop<3> loop({&args.out.layout, &args.a.layout, &args.b.layout});
  cuda::elementwise<TypeList<Out>, TypeList<T, T>>(
      stream, loop,
      cuda::Addresses<3>{{cuda::address(args.out), cuda::address(args.a), cuda::address(args.b)}},
      cuda::BinaryForward<F>{args.f});
}

template <class F, class T>
static void kernel(const BinaryBackwardArgs<F, T>& args, const Stream& stream) {
  // An unwanted output is visited as if it were the other one, and not written.
  const bool wants_a = args.da.data != nullptr;
  const bool wants_b = args.db.data != nullptr;
  if (!wants_a && !wants_b) return;
  const TensorView<T>& lead = wants_a ? args.da : args.db;
  const StridedLoop<5> loop({&lead.layout, wants_b ? &args.db.layout : &lead.layout,
                             &args.dy.layout, &args.a.layout, &args.b.layout});
  cuda::elementwise<TypeList<T, T>, TypeList<T, T, T>>(
      stream, loop,
      cuda::Addresses<5>{{cuda::address(args.da), cuda::address(args.db), cuda::address(args.dy),
                          cuda::address(args.a), cuda::address(args.b)}},
      cuda::BinaryBackward<F>{args.f});
}

}  // namespace gable

#define GABLE_CUDA_UNARY(T, F) GABLE_CUDA_KERNEL(gable::UnaryArgs<gable::F, T>)
#define GABLE_CUDA_UNARY_BACKWARD(T, F) GABLE_CUDA_KERNEL(gable::UnaryBackwardArgs<gable::F, T>)
#define GABLE_CUDA_BINARY(T, F) GABLE_CUDA_KERNEL(gable::BinaryArgs<gable::F, T>)
#define GABLE_CUDA_BINARY_BACKWARD(T, F) GABLE_CUDA_KERNEL(gable::BinaryBackwardArgs<gable::F, T>)
#define GABLE_CUDA_PREDICATE(T, F) GABLE_CUDA_KERNEL(gable::UnaryArgs<gable::F, T, bool>)
#define GABLE_CUDA_COMPARE(T, F) GABLE_CUDA_KERNEL(gable::BinaryArgs<gable::F, T, bool>)
