// SPDX-License-Identifier: Apache-2.0
// What is asked by device without running a kernel.
#include "gable/tensor/backend.hpp"

#include "gable/memory/allocator.hpp"

namespace gable {

namespace cuda {
Allocator& allocator(Device device);  // cuda/ or no_cuda.cpp
}

Allocator& allocator_of(Device device) {
  return device.type == DeviceType::cuda ? cuda::allocator(device) : cpu_allocator();
}

}  // namespace gable
