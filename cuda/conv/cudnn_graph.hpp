// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph library: descriptors that own themselves, results as exceptions, one handle a
// device.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

#include "gable/core/device.hpp"

namespace gable::cuda {

/// Throws CudaError with the expression, cuDNN's text of the status, and the operator that is
/// running, unless `status` is success.
void check_dnn(cudnnStatus_t status, const char* expression,
               std::source_location where = std::source_location::current());
#define GABLE_DNN_CHECK(...) ::gable::cuda::check_dnn((__VA_ARGS__), #__VA_ARGS__)

/// One descriptor of the graph library.
class DnnDescriptor {
 public:
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type) {
    GABLE_DNN_CHECK(cudnnBackendCreateDescriptor(type, &raw_));
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  DnnDescriptor(const DnnDescriptor&) = delete;
  DnnDescriptor& operator=(const DnnDescriptor&) = delete;
  ~DnnDescriptor() {
    if (raw_ != nullptr) static_cast<void>(cudnnBackendDestroyDescriptor(raw_));
  }
  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class V>
  void set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           const V& value) {
    GABLE_DNN_CHECK(cudnnBackendSetAttribute(raw_, attribute, type, 1, &value));
  }
  template <class V, size_t N>
  void set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           const V (&values)[N]) {
    GABLE_DNN_CHECK(cudnnBackendSetAttribute(raw_, attribute, type, N, values));
  }
  void set(cudnnBackendAttributeName_t attribute, const DnnDescriptor& value) {
    set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  void set(cudnnBackendAttributeName_t attribute, const std::vector<int64_t>& values) {
    GABLE_DNN_CHECK(cudnnBackendSetAttribute(raw_, attribute, CUDNN_TYPE_INT64,
                                             static_cast<int64_t>(values.size()), values.data()));
  }
  void finalize() { GABLE_DNN_CHECK(cudnnBackendFinalize(raw_)); }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// A device's handle, held alone: handles take one thread at a time.
class DnnHandle {
 public:
  explicit DnnHandle(const Stream& stream);
  [[nodiscard]] cudnnHandle_t raw() const { return raw_; }

 private:
  std::unique_lock<std::mutex> lock_;
  cudnnHandle_t raw_ = nullptr;
};

}  // namespace gable::cuda
