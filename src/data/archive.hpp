// SPDX-License-Identifier: Apache-2.0
// Members of tar archives, compressed or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "gable/core/error.hpp"

namespace gable::data::detail {

/// Calls take(name, bytes) for each regular member whose name `wanted` accepts, in the archive's
/// order. Names are the archive's bytes, which are UTF-8 nearly everywhere. Throws FormatError
/// with the archive, the member and the byte (of the tar, uncompressed) where it is cut or
/// damaged, also for an archive without its end mark.
void read_archive(Where where, const std::filesystem::path& path,
                  const std::function<bool(const std::string& name)>& wanted,
                  const std::function<void(std::string name, std::vector<uint8_t> bytes)>& take);

}  // namespace gable::data::detail
