// SPDX-License-Identifier: Apache-2.0
// Staging: dense stand-ins for views that a kernel cannot walk.
#pragma once

#include <utility>
#include <vector>

#include "gable/memory/storage.hpp"
#include "gable/tensor/view.hpp"

namespace gable::cuda {

/// Keeps the stand-ins of one operator and writes back those that it changed.
class Staging {
 public:
  explicit Staging(const Stream& stream) : stream_(stream) {}
  /// `view` itself if it lies in memory exactly as `order` (dense, of its shape), else a copy that
  /// does; write_back() copies it back if `changes`.
  template <class T>
  [[nodiscard]] TensorView<T> in_order(const TensorView<T>& view, const Layout& order,
                                       bool changes) {
    using Value = std::remove_const_t<T>;
    const AnyView any{const_cast<Value*>(view.data), view.layout, dtype_of<Value>};
    const AnyView there = place(any, order, changes);
    return {static_cast<T*>(there.data), there.layout};
  }
  void write_back() const;

 private:
  AnyView place(const AnyView& view, const Layout& order, bool changes);

  Stream stream_;
  std::vector<Storage> copies_;
  std::vector<std::pair<AnyView, AnyView>> changed_;  // original, stand-in
};

}  // namespace gable::cuda
