// SPDX-License-Identifier: Apache-2.0
// Device and Stream as plain values; no CUDA headers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gable/core/error.hpp"

namespace gable {

enum class DeviceType : uint8_t { cpu, cuda };

/// Where a tensor's bytes live: the CPU or the CUDA device of that index.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;
  friend constexpr bool operator==(Device, Device) = default;
};

inline constexpr Device kCpu{DeviceType::cpu, 0};

/// "cpu" or "cuda:0".
[[nodiscard]] std::string to_string(Device device);
/// Parses "cpu", "cuda", "cuda:N". Throws DeviceError.
[[nodiscard]] Device device_from_string(std::string_view text);

inline void append(std::string& out, Device d) { out.append(to_string(d)); }

/// A queue of work on a device; `native` is a cudaStream_t there and null on the CPU.
struct Stream {
  Device device = kCpu;
  void* native = nullptr;
};

}  // namespace gable
