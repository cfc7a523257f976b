// SPDX-License-Identifier: Apache-2.0
// Results of CUDA calls as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

#include "gable/core/error.hpp"

namespace gable::cuda {

/// Throws CudaError with the expression, CUDA's name and text of the error, and the operator that
/// is running, unless `result` is cudaSuccess. Clears CUDA's last-error state; running out of
/// memory is thrown as plain Error by the allocator.
void check_result(cudaError_t result, const char* expression,
                  std::source_location where = std::source_location::current());

/// The same for a destructor or a clean-up: the error is cleared and dropped.
void ignore_result(cudaError_t result) noexcept;

}  // namespace gable::cuda

#define GABLE_CUDA_CHECK(...) ::gable::cuda::check_result((__VA_ARGS__), #__VA_ARGS__)
