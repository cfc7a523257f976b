// SPDX-License-Identifier: Apache-2.0
// TypeList: compile-time lists of dtypes and operators, with a loop over them.
#pragma once

#include <type_traits>

namespace gable {

template <class T>
struct TypeTag {
  using type = T;
};

template <class... Ts>
struct TypeList {
  static constexpr int size = sizeof...(Ts);
  template <class T>
  static constexpr bool contains = (std::is_same_v<T, Ts> || ...);
  /// Calls f(TypeTag<T>{}) for each T in order.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f(TypeTag<Ts>{}), ...);
  }
};

}  // namespace gable
