// SPDX-License-Identifier: Apache-2.0
// Error texts.
#include "gable/core/error.hpp"

#include <charconv>

namespace gable {

namespace {

// File name without the folders before include/ or src/: messages must not depend on the
// machine that built the library.
std::string_view short_file(const char* path) {
  std::string_view file(path);
  for (std::string_view root : {"include/", "src/", "cuda/"})
    if (auto at = file.rfind(root); at != std::string_view::npos) return file.substr(at);
  if (auto at = file.rfind('/'); at != std::string_view::npos) return file.substr(at + 1);
  return file;
}

}  // namespace

Error::Error(std::string_view op, std::string_view message, std::source_location where)
    : std::runtime_error(concat("[", op, "] ", message, " (", short_file(where.file_name()), ":",
                                where.line(), ")")),
      op_(op),
      message_(message),
      where_(where) {}

namespace detail {

void fail_rank(int64_t rank) {
  fail<ShapeError>("shape", "expected at most ", kMaxRank, " dimensions, got ", rank);
}

void append(std::string& out, std::string_view text) { out.append(text); }

void append(std::string& out, double value) {
  char buffer[40];
  auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

void append_signed(std::string& out, int64_t value) { out.append(std::to_string(value)); }

void append_unsigned(std::string& out, uint64_t value) { out.append(std::to_string(value)); }

}  // namespace detail

void append(std::string& out, const Dims& dims) {
  out.push_back('(');
  for (int i = 0; i < dims.size(); ++i) {
    if (i > 0) out.append(", ");
    detail::append_signed(out, dims[i]);
  }
  out.push_back(')');
}

}  // namespace gable
