// SPDX-License-Identifier: Apache-2.0
// Copies that convert to half, bfloat16.
#include "convert.cuh"

namespace gable::cuda {
template void convert_copy<half>(const AnyView&, const AnyView&, const Stream&);
template void convert_copy<bfloat16>(const AnyView&, const AnyView&, const Stream&);
}  // namespace gable::cuda
