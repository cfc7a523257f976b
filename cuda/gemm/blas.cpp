// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's handles and errors; the TF32 switch.
#include "gemm/blas.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "gable/memory/cuda.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

namespace {
std::atomic<bool> tf32_allowed{false};
}  // namespace

void set_allow_tf32(bool allow) { tf32_allowed = allow; }
bool allow_tf32() { return tf32_allowed; }

void check_blas(cublasStatus_t status, const char* expression, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  ignore_result(cudaGetLastError());
  throw CudaError(current_op(),
                  concat("expected success of ", expression, ", got ",
                         cublasLtGetStatusName(status), ": ", cublasLtGetStatusString(status)),
                  where);
}

cublasLtHandle_t blas_handle(Device device) {
  struct Slot {
    std::once_flag once;
    cublasLtHandle_t handle = nullptr;
  };
  static auto* slots = new std::array<Slot, 64>;
  const Context& c = context(device);
  Slot& slot = (*slots)[static_cast<size_t>(c.index)];
  std::call_once(slot.once, [&] {
    const DeviceGuard guard(c.index);
    GABLE_BLAS_CHECK(cublasLtCreate(&slot.handle));
  });
  return slot.handle;
}

}  // namespace gable::cuda
