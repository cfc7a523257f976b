// SPDX-License-Identifier: Apache-2.0
// Exceptions and always-on checks. Message form: "[op] expected ..., got ... (file:line)".
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gable/core/dims.hpp"

namespace gable {

/// Base of everything that gable throws. `what()` is "[op] message (file:line)".
class Error : public std::runtime_error {
 public:
  Error(std::string_view op, std::string_view message, std::source_location where);
  /// Name of the operator or component that refused its input.
  [[nodiscard]] const std::string& op() const noexcept { return op_; }
  /// The text without the operator tag and the source location.
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  /// The check that failed, in gable's own sources.
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

 private:
  std::string op_;
  std::string message_;
  std::source_location where_;
};

/// Shapes, strides or ranks that do not fit together.
class ShapeError : public Error {
  using Error::Error;
};
/// A dtype that an operator does not take, or a value outside what it accepts.
class TypeError : public Error {
  using Error::Error;
};
/// A device that is absent, or tensors on different devices.
class DeviceError : public Error {
  using Error::Error;
};
/// An index, dimension or class label out of range.
class IndexError : public Error {
  using Error::Error;
};
/// A file or byte stream that does not hold what it should; names the file and the byte.
class FormatError : public Error {
  using Error::Error;
};
/// A CUDA call that failed; carries the expression.
class CudaError : public Error {
  using Error::Error;
};

/// Operator name plus the source location of the call that builds it from a string literal.
struct Where {
  const char* op;
  std::source_location location;
  Where(const char* name,  // NOLINT(google-explicit-constructor)
        std::source_location here = std::source_location::current())
      : op(name), location(here) {}
};

void append(std::string& out, const Dims& dims);  // "(2, 3)"

namespace detail {

void append(std::string& out, std::string_view text);
void append(std::string& out, double value);
void append_signed(std::string& out, int64_t value);
void append_unsigned(std::string& out, uint64_t value);
inline void append(std::string& out, const char* text) { append(out, std::string_view(text)); }
inline void append(std::string& out, const std::string& text) {
  append(out, std::string_view(text));
}
inline void append(std::string& out, bool value) { append(out, value ? "true" : "false"); }
inline void append(std::string& out, char value) { append(out, std::string_view(&value, 1)); }
template <std::signed_integral I>
void append(std::string& out, I value) {
  append_signed(out, value);
}
template <std::unsigned_integral I>
void append(std::string& out, I value) {
  append_unsigned(out, value);
}

}  // namespace detail

/// Joins values (text, numbers, shapes, layouts, dtypes, devices) into one string.
template <class... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::string text;
  using detail::append;  // built-in types; append() of gable types and users' is found by ADL
  (append(text, parts), ...);
  return text;
}

/// Throws E with the joined parts.
template <class E = ShapeError, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(Where where, const Parts&... parts) {
  throw E(where.op, concat(parts...), where.location);
}

/// Throws E with the joined parts unless `ok`. Never compiled out; builds no text on success.
template <class E = ShapeError, class... Parts>
inline void check(bool ok, Where where, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail<E>(where, parts...);
}

}  // namespace gable
