// SPDX-License-Identifier: Apache-2.0
// Stands in for cudnn.cpp in builds without cuDNN.
#include "conv/plan.hpp"

namespace gable::cuda {

template <class Args>
bool cudnn_supports(const Args&, const Stream&) {
  return false;
}

template <class Args>
void cudnn_conv(const Args&, const Stream&) {
  fail<Error>(Args::name, "expected a build with cuDNN, got one without");
}

#define GABLE_NO_CUDNN(...)                                        \
  template bool cudnn_supports(const __VA_ARGS__&, const Stream&); \
  template void cudnn_conv(const __VA_ARGS__&, const Stream&);
GABLE_CONV_ARGS(GABLE_NO_CUDNN)

}  // namespace gable::cuda
