// SPDX-License-Identifier: Apache-2.0
// dst += src.
#include "copy.hpp"
#include "device/elementwise.cuh"
#include "runtime/scratch.hpp"

namespace gable::cuda {

namespace {

struct AddInto {
  template <class V>
  __device__ __forceinline__ void operator()(V& out, V old, V x) const {
    out = static_cast<V>(old + x);
  }
};

template <class T>
void accumulate(const AnyView& dst, const AnyView& src, const Stream& stream) {
  const StridedLoop<3> loop({&dst.layout, &dst.layout, &src.layout});
  elementwise<TypeList<T>, TypeList<T, T>>(stream, loop,
                                           Addresses<3>{{dst.data, dst.data, src.data}}, AddInto{});
}

}  // namespace

void add_on_device(const AnyView& dst, const AnyView& src, const Stream& stream) {
  visit_dtype(dst.dtype, [&]<class T>(TypeTag<T>) {
    if (src.dtype == dst.dtype) return accumulate<T>(dst, src, stream);
    // Gradients of another dtype are converted first.
    const Scratch<T> same(dst.layout.numel(), stream);
    const AnyView converted{same.data(), src.layout.like(), dst.dtype};
    copy_on_device(converted, src, false, stream);
    accumulate<T>(dst, converted, stream);
  });
}

}  // namespace gable::cuda
