// SPDX-License-Identifier: Apache-2.0
// Copies that convert to float, double.
#include "convert.cuh"

namespace gable::cuda {
template void convert_copy<float>(const AnyView&, const AnyView&, const Stream&);
template void convert_copy<double>(const AnyView&, const AnyView&, const Stream&);
}  // namespace gable::cuda
