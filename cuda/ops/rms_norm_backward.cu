// SPDX-License-Identifier: Apache-2.0
// Gradient of RMS norm.
#include "layer_norm_backward.cuh"

GABLE_CUDA_KERNEL_FLOATS(RmsNormBackwardArgs)
