// SPDX-License-Identifier: Apache-2.0
// Names of dtypes and devices, and the kernel observer slot.
#include "gable/core/device.hpp"

#include <array>
#include <charconv>

#include "gable/core/dtype.hpp"
#include "gable/core/hooks.hpp"

namespace gable {

namespace {
constexpr std::array<std::string_view, 8> kDTypeNames = {
    "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"};
}

std::string_view name(DType t) { return kDTypeNames[static_cast<size_t>(t)]; }

DType dtype_from_name(std::string_view text) {
  for (size_t i = 0; i < kDTypeNames.size(); ++i)
    if (kDTypeNames[i] == text) return static_cast<DType>(i);
  if (text == "float") return DType::float32;
  if (text == "double") return DType::float64;
  if (text == "half") return DType::float16;
  fail<TypeError>("dtype",
                  "expected one of float32, float64, float16, bfloat16, int32, int64, uint8, "
                  "bool, got \"",
                  text, "\"");
}

std::string to_string(Device device) {
  if (device.type == DeviceType::cpu) return "cpu";
  return concat("cuda:", device.index);
}

Device device_from_string(std::string_view text) {
  if (text == "cpu") return kCpu;
  if (text == "cuda") return {DeviceType::cuda, 0};
  if (text.starts_with("cuda:")) {
    int index = -1;
    const char* end = text.data() + text.size();
    auto [rest, ec] = std::from_chars(text.data() + 5, end, index);
    if (ec == std::errc{} && rest == end && index >= 0) return {DeviceType::cuda, index};
  }
  fail<DeviceError>("device", "expected cpu, cuda or cuda:N, got \"", text, "\"");
}

namespace detail {

KernelObserver*& current_observer() noexcept {
  thread_local KernelObserver* observer = nullptr;
  return observer;
}

}  // namespace detail

}  // namespace gable
