// SPDX-License-Identifier: Apache-2.0
// The files of CIFAR-10, from a folder or an archive, not yet decoded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gable/data/dataset.hpp"

namespace gable::data::detail {

struct BatchFile {
  std::string name;   ///< "data_batch_1.bin"
  std::string label;  ///< what messages call it: the path, or "archive: member"
  std::vector<uint8_t> bytes;
};

struct ImageFile {
  Split split = Split::train;
  std::string class_name;
  std::string file;
  std::string label;
  std::vector<uint8_t> bytes;
};

/// Everything of either form; a set is in one of them.
struct CifarFiles {
  std::string path;
  std::vector<BatchFile> batches;
  std::vector<ImageFile> images;
  std::set<std::string> class_names;  ///< of images in both splits, wanted or not
};

/// Reads what `path` holds; with `only`, images of the other split are not read. Throws
/// FormatError if the path cannot be read or holds neither form.
[[nodiscard]] CifarFiles read_cifar_files(const std::filesystem::path& path,
                                          std::optional<Split> only);

}  // namespace gable::data::detail
