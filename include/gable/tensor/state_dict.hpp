// SPDX-License-Identifier: Apache-2.0
// StateDict: named tensors in a fixed order, as modules and optimizers save them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gable/tensor/any_tensor.hpp"

namespace gable {

/// Names with handles (not copies), in registration order; names are unique.
class StateDict {
 public:
  using Entry = std::pair<std::string, AnyTensor>;

  /// Throws Error for a name that is there already.
  void add(std::string name, AnyTensor tensor) {
    check<Error>(find(name) == nullptr, "state_dict", "expected unique names, got \"", name,
                 "\" twice");
    index_.emplace(name, entries_.size());
    entries_.emplace_back(std::move(name), std::move(tensor));
  }
  /// Null if absent.
  [[nodiscard]] const AnyTensor* find(std::string_view name) const {
    const auto at = index_.find(name);
    return at == index_.end() ? nullptr : &entries_[at->second].second;
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> index_;  // a file may hold millions of names
};

}  // namespace gable
