// SPDX-License-Identifier: Apache-2.0
// JPEG decoding into memory of the caller.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gable/core/error.hpp"

namespace gable::data::detail {

/// Decodes an image that must be (height, width) to dense RGB at `out`. Throws FormatError.
void decode_jpeg_into(Where where, std::span<const uint8_t> bytes, std::string_view name,
                      int64_t height, int64_t width, uint8_t* out);

}  // namespace gable::data::detail
