// SPDX-License-Identifier: Apache-2.0
// Random tensors. One seed gives the same numbers on every device and for any thread count.
#pragma once

#include <cstdint>
#include <mutex>

#include "gable/tensor/tensor.hpp"

namespace gable {

/// A seed and a position in its Philox stream. Drawing advances the position by the counters
/// used; state and set_state make a run repeatable from any point. Thread-safe.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : seed_(seed) {}
  struct State {
    uint64_t seed = 0;
    uint64_t offset = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] State state() const {
    const std::lock_guard lock(mutex_);
    return {seed_, offset_};
  }
  void set_state(State state) {
    const std::lock_guard lock(mutex_);
    seed_ = state.seed;
    offset_ = state.offset;
  }
  void manual_seed(uint64_t seed) { set_state({seed, 0}); }
  /// Reserves counters for `elements` draws (4 a counter) and returns the state before them.
  State advance(int64_t elements) {
    const std::lock_guard lock(mutex_);
    const State before{seed_, offset_};
    offset_ += (static_cast<uint64_t>(elements) + 3) / 4;
    return before;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t seed_;
  uint64_t offset_ = 0;
};

/// The process-wide generator that random functions use unless given another. Seed 0 at start.
[[nodiscard]] Generator& default_generator();
/// default_generator().manual_seed(seed).
void manual_seed(uint64_t seed);

/// Uniform in [low, high). Throws TypeError for non-finite or crossed bounds.
template <FloatElement T>
[[nodiscard]] Tensor<T> rand(const Shape& shape, double low = 0, double high = 1,
                             TensorOptions o = {}, Generator& g = default_generator());
/// Normal with the given mean and standard deviation (Box-Muller on two draws).
template <FloatElement T>
[[nodiscard]] Tensor<T> randn(const Shape& shape, double mean = 0, double stddev = 1,
                              TensorOptions o = {}, Generator& g = default_generator());
/// Integers in [low, high).
template <Element T>
[[nodiscard]] Tensor<T> randint(int64_t low, int64_t high, const Shape& shape, TensorOptions o = {},
                                Generator& g = default_generator());
/// true (or 1) with the given probability.
template <Element T = bool>
[[nodiscard]] Tensor<T> bernoulli(double probability, const Shape& shape, TensorOptions o = {},
                                  Generator& g = default_generator());
/// A random order of 0 .. n-1.
[[nodiscard]] Tensor<int64_t> randperm(int64_t n, Device device = kCpu,
                                       Generator& g = default_generator());

}  // namespace gable
