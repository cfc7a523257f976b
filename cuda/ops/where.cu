// SPDX-License-Identifier: Apache-2.0
// Selection by a mask.
#include "gable/ops/where.hpp"

#include <cstdint>
#include <type_traits>

#include "elementwise.cuh"

namespace gable {
namespace {

struct Select {
  template <class V>
  __device__ __forceinline__ void operator()(V& out, bool condition, V a, V b) const {
    out = condition ? a : b;
  }
};

// Elements are copied as bits, so that types of one size share a kernel and NaNs keep theirs.
template <size_t kBytes>
using Bits = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

template <class T>
void select(const Stream& stream, const StridedLoop<4>& loop, const cuda::Addresses<4>& addresses) {
  cuda::elementwise<TypeList<T>, TypeList<bool, T, T>>(stream, loop, addresses, Select{});
}

}  // namespace

template <class T>
static void kernel(const WhereArgs<T>& args, const Stream& stream) {
  const StridedLoop<4> loop(
      {&args.out.layout, &args.condition.layout, &args.a.layout, &args.b.layout});
  select<Bits<sizeof(T)>>(
      stream, loop,
      cuda::Addresses<4>{{cuda::address(args.out), cuda::address(args.condition),
                          cuda::address(args.a), cuda::address(args.b)}});
}

}  // namespace gable

GABLE_CUDA_KERNEL_ALL(WhereArgs)
