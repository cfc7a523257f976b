// SPDX-License-Identifier: Apache-2.0
// Version and compiler switches; the one header that looks at CUDA's preprocessor symbols.
#pragma once

#define GABLE_VERSION_MAJOR 0
#define GABLE_VERSION_MINOR 1
#define GABLE_VERSION_PATCH 0

#ifdef __CUDACC__
#define GABLE_HD __host__ __device__
#else
#define GABLE_HD
#endif

// Whether this pass of the compiler makes device code.
#ifdef __CUDA_ARCH__
#define GABLE_DEVICE_CODE 1
#else
#define GABLE_DEVICE_CODE 0
#endif
