// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 from files.
#pragma once

#include <filesystem>

#include "gable/data/dataset.hpp"

namespace gable::data {

/// Opens CIFAR-10 (32x32 colour images, labels by class) in any of these forms:
///   - the official binary version: a folder with data_batch_1..5.bin and test_batch.bin (or
///     with cifar-10-batches-bin/ in it), or a tar of it, compressed or not;
///   - train/CLASS/*.jpg and test/CLASS/*.jpg, as a folder or in a tar, compressed or not.
///     Classes are numbered in the order of their sorted names, images sorted by name.
/// All bytes are checked before a set is returned: FormatError names the file, the archive's
/// member and the byte for missing, cut or foreign files, labels above 9 and broken images.
class Cifar10 {
 public:
  /// Both parts, in one pass over the files.
  [[nodiscard]] static TrainTest open(const std::filesystem::path& path);
  /// One part; the other need not be there.
  [[nodiscard]] static ImageDataset open(const std::filesystem::path& path, Split split);

  /// The training set's statistics by channel.
  static constexpr Normalization kNormalization = {.mean = {125.3F, 123.0F, 113.9F, 0},
                                                   .stddev = {63.0F, 62.1F, 66.7F, 1}};
};

}  // namespace gable::data
