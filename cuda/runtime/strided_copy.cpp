// SPDX-License-Identifier: Apache-2.0
// A file apart from kernel.hpp, in whose presence run() would want the copy kernel's definition.
#include "runtime/strided_copy.hpp"

#include "gable/ops/elementwise.hpp"
#include "gable/tensor/backend.hpp"

namespace gable::cuda {

void strided_copy(const AnyView& to, const AnyView& from, const Stream& stream) {
  run(CopyArgs{to, from, false, stream.device, stream.device}, stream);
}

template <class T>
void fill_zero(const TensorView<T>& view, const Stream& stream) {
  run(FillArgs<T>{view, T{}}, stream);
}

template <class T>
void scale_by(const TensorView<T>& view, double factor, const Stream& stream) {
  run(UnaryArgs<MulScalar, T>{view, view, MulScalar{factor}}, stream);
}

template void scale_by<float>(const TensorView<float>&, double, const Stream&);
template void scale_by<double>(const TensorView<double>&, double, const Stream&);
template void fill_zero<float>(const TensorView<float>&, const Stream&);
template void fill_zero<double>(const TensorView<double>&, const Stream&);
template void fill_zero<half>(const TensorView<half>&, const Stream&);
template void fill_zero<bfloat16>(const TensorView<bfloat16>&, const Stream&);

}  // namespace gable::cuda
