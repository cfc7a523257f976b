// SPDX-License-Identifier: Apache-2.0
// Gradient of layer norm.
#include "layer_norm_backward.cuh"

GABLE_CUDA_KERNEL_FLOATS(LayerNormBackwardArgs)
