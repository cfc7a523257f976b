// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: results as exceptions, one handle a device.
#pragma once

#include <cublasLt.h>

#include <source_location>

#include "gable/core/device.hpp"

namespace gable::cuda {

/// Throws CudaError with the expression, cuBLAS's name and text of the status, and the operator
/// that is running, unless `status` is success.
void check_blas(cublasStatus_t status, const char* expression,
                std::source_location where = std::source_location::current());

/// The device's handle; made on first use, never destroyed. Any thread may use it.
[[nodiscard]] cublasLtHandle_t blas_handle(Device device);

}  // namespace gable::cuda

#define GABLE_BLAS_CHECK(...) ::gable::cuda::check_blas((__VA_ARGS__), #__VA_ARGS__)
