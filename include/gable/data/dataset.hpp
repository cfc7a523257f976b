// SPDX-License-Identifier: Apache-2.0
// Datasets of labelled images: the interface that data::Loader reads, and one held in memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gable/data/image.hpp"
#include "gable/tensor/tensor.hpp"

namespace gable::data {

/// One labelled image. `owner` keeps pixels alive that were made for this sample; datasets that
/// hold their images leave it empty.
struct Sample {
  ImageView image;
  int64_t label = 0;
  std::shared_ptr<const void> owner = {};
};

/// What data::Loader reads. get() is called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual int64_t size() const = 0;
  /// The sample at 0 <= index < size(). May throw; the loader adds the index.
  [[nodiscard]] virtual Sample get(int64_t index) const = 0;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) = default;
  Dataset& operator=(const Dataset&) = default;
  Dataset& operator=(Dataset&&) = default;
};

inline constexpr int64_t kMaxChannels = 4;

/// (pixel - mean) / stddev by channel, in units of 0 .. 255.
struct Normalization {
  std::array<float, kMaxChannels> mean = {0, 0, 0, 0};
  std::array<float, kMaxChannels> stddev = {1, 1, 1, 1};
  friend bool operator==(const Normalization&, const Normalization&) = default;
};

/// Mean and population standard deviation by channel over all pixels of `dataset` (a constant
/// channel gets stddev 1). One pass over the data. Throws ShapeError if it is empty.
[[nodiscard]] Normalization measure_normalization(const Dataset& dataset);

/// One image as a normalised batch (1, C, H, W), channels-last.
[[nodiscard]] Tensor<float> to_batch(const ImageView& image, const Normalization& normalization);

/// Images and labels in memory. Copies share them.
class ImageDataset : public Dataset {
 public:
  /// images (N, H, W, C) dense, labels (N) in [0, class_names.size()). Throws ShapeError or
  /// IndexError where these do not fit together, DeviceError unless both are on the CPU.
  ImageDataset(Tensor<uint8_t> images, Tensor<int64_t> labels, std::vector<std::string> class_names,
               const Normalization& normalization);

  [[nodiscard]] int64_t size() const override { return labels_.size(0); }
  /// Throws IndexError outside [0, size()).
  [[nodiscard]] Sample get(int64_t index) const override;

  /// (N, H, W, C), row-major.
  [[nodiscard]] const Tensor<uint8_t>& images() const { return images_; }
  /// (N).
  [[nodiscard]] const Tensor<int64_t>& labels() const { return labels_; }
  [[nodiscard]] const std::vector<std::string>& class_names() const { return class_names_; }
  [[nodiscard]] int64_t classes() const { return static_cast<int64_t>(class_names_.size()); }
  /// What a model for this kind of data is trained with; the same for its train and test set.
  [[nodiscard]] const Normalization& normalization() const { return normalization_; }
  /// The first `count` samples, sharing memory. Throws IndexError unless 1 <= count <= size().
  [[nodiscard]] ImageDataset first(int64_t count) const;

 private:
  Tensor<uint8_t> images_;
  Tensor<int64_t> labels_;
  std::vector<std::string> class_names_;
  Normalization normalization_;
};

enum class Split { train, test };

/// Both parts of a set; they have the same class names and normalisation.
struct TrainTest {
  ImageDataset train;
  ImageDataset test;
};

}  // namespace gable::data
