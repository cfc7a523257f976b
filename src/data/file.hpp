// SPDX-License-Identifier: Apache-2.0
// Whole files into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "gable/core/error.hpp"

namespace gable::data::detail {

/// All bytes of a regular file. Throws FormatError naming it and the system's reason.
[[nodiscard]] std::vector<uint8_t> read_file(Where where, const std::filesystem::path& path);

}  // namespace gable::data::detail
