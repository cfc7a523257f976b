// SPDX-License-Identifier: Apache-2.0
// The parsed and checked header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gable/core/dtype.hpp"
#include "gable/io/safetensors.hpp"

namespace gable::io {

struct HeaderEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  uint64_t begin = 0;  ///< bytes, from the end of the header
  uint64_t end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;  ///< by begin
  Metadata metadata;
};

/// Parses the JSON text, which starts at byte 8 of a file that has `data_bytes` after it. Throws
/// FormatError naming `file`.
[[nodiscard]] Header parse_header(std::string_view json, uint64_t data_bytes,
                                  std::string_view file);

/// The format's name of a dtype: "F32", ...
[[nodiscard]] std::string_view safetensors_name(DType dtype);

}  // namespace gable::io
