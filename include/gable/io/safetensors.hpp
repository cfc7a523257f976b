// SPDX-License-Identifier: Apache-2.0
// Safetensors files (https://github.com/huggingface/safetensors): named tensors and text, which
// PyTorch, NumPy and others read and write too.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "gable/tensor/state_dict.hpp"

namespace gable::io {

using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  StateDict tensors;  ///< in the order of their bytes in the file
  Metadata metadata;
};

/// Writes all tensors (from any device, of any strides) and `metadata`, atomically: see AtomicFile.
/// Larger element types come first, so that each tensor is aligned in the file. Throws FileError,
/// and FormatError for names or text that are not UTF-8.
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata = {});

/// Reads a whole file into CPU tensors. Everything is checked before any tensor is allocated:
/// header length and JSON, duplicate names, dtypes, shapes against byte ranges, ranges against the
/// file, overlaps and gaps. Throws FormatError with file, tensor and byte, or FileError.
[[nodiscard]] Safetensors load_safetensors(const std::filesystem::path& path);
/// The same from memory; `name` stands in messages.
[[nodiscard]] Safetensors parse_safetensors(std::span<const std::byte> bytes,
                                            std::string_view name = "memory");
/// Only the metadata; the same checks.
[[nodiscard]] Metadata load_safetensors_metadata(const std::filesystem::path& path);

}  // namespace gable::io
