// SPDX-License-Identifier: Apache-2.0
// Copies that convert to int32_t, int64_t, uint8_t, bool.
#include "convert.cuh"

namespace gable::cuda {
template void convert_copy<int32_t>(const AnyView&, const AnyView&, const Stream&);
template void convert_copy<int64_t>(const AnyView&, const AnyView&, const Stream&);
template void convert_copy<uint8_t>(const AnyView&, const AnyView&, const Stream&);
template void convert_copy<bool>(const AnyView&, const AnyView&, const Stream&);
}  // namespace gable::cuda
