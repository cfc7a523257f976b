// SPDX-License-Identifier: Apache-2.0
// DType: the run-time name of an element type, and the compile-time traits of the eight types.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "gable/core/error.hpp"
#include "gable/core/half.hpp"
#include "gable/core/type_list.hpp"

namespace gable {

enum class DType : uint8_t { float32, float64, float16, bfloat16, int32, int64, uint8, boolean };

using FloatTypes = TypeList<float, double, half, bfloat16>;
using AllTypes = TypeList<float, double, half, bfloat16, int32_t, int64_t, uint8_t, bool>;

/// One of the eight element types of a Tensor.
template <class T>
concept Element = AllTypes::contains<T>;
/// float, double, half, bfloat16.
template <class T>
concept FloatElement = FloatTypes::contains<T>;
/// half, bfloat16.
template <class T>
concept SmallFloat = std::same_as<T, half> || std::same_as<T, bfloat16>;

namespace detail {
template <class T>
consteval DType dtype_of_impl() {
  if constexpr (std::same_as<T, float>) return DType::float32;
  if constexpr (std::same_as<T, double>) return DType::float64;
  if constexpr (std::same_as<T, half>) return DType::float16;
  if constexpr (std::same_as<T, bfloat16>) return DType::bfloat16;
  if constexpr (std::same_as<T, int32_t>) return DType::int32;
  if constexpr (std::same_as<T, int64_t>) return DType::int64;
  if constexpr (std::same_as<T, uint8_t>) return DType::uint8;
  if constexpr (std::same_as<T, bool>) return DType::boolean;
}
template <class T>
struct ComputeType {
  using type = T;
};
template <SmallFloat T>
struct ComputeType<T> {
  using type = float;
};
}  // namespace detail

template <Element T>
inline constexpr DType dtype_of = detail::dtype_of_impl<T>();

/// The type that element arithmetic happens in: float for half and bfloat16, else T itself.
template <class T>
using Compute = typename detail::ComputeType<T>::type;

[[nodiscard]] constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::float64:
    case DType::int64: return 8;
    case DType::float32:
    case DType::int32: return 4;
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::uint8:
    case DType::boolean: return 1;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_floating_point(DType t) { return t <= DType::bfloat16; }

/// "float32", "bfloat16", ... : NumPy's and PyTorch's names.
[[nodiscard]] std::string_view name(DType t);
/// Inverse of name(); also takes "float", "double", "half". Throws TypeError.
[[nodiscard]] DType dtype_from_name(std::string_view text);

inline void append(std::string& out, DType t) { out.append(name(t)); }

/// Calls f(TypeTag<T>{}) for the T that `dtype` names.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32: return f(TypeTag<float>{});
    case DType::float64: return f(TypeTag<double>{});
    case DType::float16: return f(TypeTag<half>{});
    case DType::bfloat16: return f(TypeTag<bfloat16>{});
    case DType::int32: return f(TypeTag<int32_t>{});
    case DType::int64: return f(TypeTag<int64_t>{});
    case DType::uint8: return f(TypeTag<uint8_t>{});
    case DType::boolean: break;
  }
  return f(TypeTag<bool>{});
}

/// static_cast that goes through float for half and bfloat16. Float to integer follows C++
/// (undefined outside the range), so callers that take user values check first.
template <class To, class From>
GABLE_HD constexpr To convert(From value) {
  if constexpr (std::same_as<To, From>)
    return value;
  else if constexpr (std::same_as<To, bool> && SmallFloat<From>)
    return static_cast<float>(value) != 0.0F;
  else if constexpr (std::same_as<To, bool>)
    return value != From{};
  else if constexpr (SmallFloat<From>)
    return convert<To>(static_cast<float>(value));
  else if constexpr (SmallFloat<To>)
    return To(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

}  // namespace gable
