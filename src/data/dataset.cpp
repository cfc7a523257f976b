// SPDX-License-Identifier: Apache-2.0
// Datasets in memory.
#include "gable/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "normalize.hpp"

namespace gable::data {

ImageDataset::ImageDataset(Tensor<uint8_t> images, Tensor<int64_t> labels,
                           std::vector<std::string> class_names, const Normalization& normalization)
    : images_(std::move(images)),
      labels_(std::move(labels)),
      class_names_(std::move(class_names)),
      normalization_(normalization) {
  constexpr const char* kOp = "image_dataset";
  check(images_.rank() == 4 && images_.is_contiguous(), kOp,
        "expected images (N, H, W, C) row-major, got shape ", images_.shape());
  check(labels_.rank() == 1 && labels_.is_contiguous() && labels_.size(0) == images_.size(0), kOp,
        "expected labels (", images_.size(0), "), got shape ", labels_.shape());
  check<DeviceError>(images_.device() == kCpu && labels_.device() == kCpu, kOp,
                     "expected images and labels on the CPU, got ", images_.device(), " and ",
                     labels_.device());
  check(images_.size(3) <= kMaxChannels, kOp, "expected at most ", kMaxChannels,
        " channels, got images of shape ", images_.shape());
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t label = labels_.data()[i];
    check<IndexError>(label >= 0 && label < classes(), kOp, "expected labels 0 .. ", classes() - 1,
                      ", got ", label, " for image ", i);
  }
}

Sample ImageDataset::get(int64_t index) const {
  check<IndexError>(index >= 0 && index < size(), "image_dataset", "expected an index in [0, ",
                    size(), "), got ", index);
  const ImageView view{nullptr, images_.size(1), images_.size(2), images_.size(3)};
  return {{images_.data() + index * view.size(), view.height, view.width, view.channels},
          labels_.data()[index]};
}

ImageDataset ImageDataset::first(int64_t count) const {
  check<IndexError>(count >= 1 && count <= size(), "image_dataset", "expected 1 .. ", size(),
                    " samples, got ", count);
  return {images_.narrow(0, 0, count), labels_.narrow(0, 0, count), class_names_, normalization_};
}

Normalization measure_normalization(const Dataset& dataset) {
  constexpr const char* kOp = "measure_normalization";
  check(dataset.size() > 0, kOp, "expected at least one sample, got an empty dataset");
  // Pixels are bytes, so that counting them gives exact sums in one pass.
  std::array<std::array<int64_t, 256>, kMaxChannels> counts{};
  int64_t channels = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const Sample sample = dataset.get(i);
    if (i == 0) channels = sample.image.channels;
    check(sample.image.channels == channels && channels >= 1 && channels <= kMaxChannels, kOp,
          "expected images of ", std::clamp<int64_t>(channels, 1, kMaxChannels), " channels, got ",
          sample.image.channels, " for sample ", i);
    for (int64_t k = 0; k < sample.image.size(); ++k)
      ++counts[static_cast<size_t>(k % channels)][sample.image.pixels[k]];
  }
  Normalization result;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    double n = 0;
    double sum = 0;
    for (size_t v = 0; v < 256; ++v) {
      n += static_cast<double>(counts[c][v]);
      sum += static_cast<double>(counts[c][v]) * static_cast<double>(v);
    }
    check(n > 0, kOp, "expected images with pixels, got none");
    const double mean = sum / n;
    double squares = 0;
    for (size_t v = 0; v < 256; ++v) {
      const double d = static_cast<double>(v) - mean;
      squares += static_cast<double>(counts[c][v]) * d * d;
    }
    result.mean[c] = static_cast<float>(mean);
    result.stddev[c] = squares > 0 ? static_cast<float>(std::sqrt(squares / n)) : 1.0F;
  }
  return result;
}

Tensor<float> to_batch(const ImageView& image, const Normalization& normalization) {
  check(image.size() > 0 && image.channels <= kMaxChannels, "to_batch",
        "expected an image with pixels and at most ", kMaxChannels, " channels, got ", image.height,
        " x ", image.width, " x ", image.channels);
  Tensor<float> batch({1, image.channels, image.height, image.width}, kCpu,
                      MemoryFormat::channels_last);
  const detail::NormalizeTable table(normalization, "to_batch");
  table.apply(image.pixels, image.height * image.width, image.channels, batch.data());
  return batch;
}

}  // namespace gable::data
