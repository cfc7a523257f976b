// SPDX-License-Identifier: Apache-2.0
// Backends: the checked concept, the one device dispatch, and launch(), which every kernel call
// goes through.
#pragma once

#include <concepts>

#include "gable/core/cost.hpp"
#include "gable/core/device.hpp"
#include "gable/core/hooks.hpp"
#include "gable/memory/cuda.hpp"

namespace gable {

/// What a kernel's argument struct looks like: views and plain parameters, with its name and the
/// work it asks for. The struct's type is the kernel's identity on every backend.
template <class A>
concept KernelArgs = requires(const A& args) {
  { A::name } -> std::convertible_to<const char*>;
  { args.cost() } -> std::same_as<Cost>;
};

namespace cpu {
/// Defined and explicitly instantiated in src/cpu, one file an operator family.
template <KernelArgs Args>
void run(const Args& args);

struct Backend {
  Device device;
  static constexpr DeviceType type = DeviceType::cpu;
  template <KernelArgs Args>
  void run(const Args& args) const {
    cpu::run(args);
  }
  void synchronize() const {}
};
}  // namespace cpu

namespace cuda {
/// Defined in the CUDA backend; builds without it link src/no_cuda.cpp, which throws.
template <KernelArgs Args>
void run(const Args& args, const Stream& stream);

struct Backend {
  Device device;
  static constexpr DeviceType type = DeviceType::cuda;
  template <KernelArgs Args>
  void run(const Args& args) const {
    cuda::run(args, current_stream(device));
  }
  void synchronize() const { cuda::synchronize(device); }
};
}  // namespace cuda

namespace detail {
struct ProbeArgs {
  static constexpr const char* name = "probe";
  [[nodiscard]] static Cost cost() { return {}; }
};
}  // namespace detail

template <class B>
concept Backend = requires(const B& backend, const detail::ProbeArgs& args) {
  { B::type } -> std::convertible_to<DeviceType>;
  { backend.device } -> std::convertible_to<Device>;
  backend.run(args);
  backend.synchronize();
};
static_assert(Backend<cpu::Backend> && Backend<cuda::Backend>);

/// Calls f with the backend of `device`: the only place that asks which device it is.
template <class F>
decltype(auto) visit_device(Device device, F&& f) {
  if (device.type == DeviceType::cuda) return f(cuda::Backend{device});
  return f(cpu::Backend{device});
}

/// Waits until all work queued on `device` is done.
inline void synchronize(Device device) {
  visit_device(device, [](const auto& backend) { backend.synchronize(); });
}

/// Runs a kernel on a device, inside the observer's begin and end if one is installed.
template <KernelArgs Args>
void launch(Device device, const Args& args) {
  KernelObserver* observer = detail::current_observer();
  if (observer != nullptr) observer->begin(Args::name, device, args.cost());
  try {
    visit_device(device, [&](const auto& backend) { backend.run(args); });
  } catch (...) {
    if (observer != nullptr) observer->end();
    throw;
  }
  if (observer != nullptr) observer->end();
}

}  // namespace gable
