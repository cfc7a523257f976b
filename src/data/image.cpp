// SPDX-License-Identifier: Apache-2.0
// Reading and resizing images.
#include "gable/data/image.hpp"

#include <algorithm>
#include <cmath>

#include "file.hpp"
#include "gable/core/error.hpp"

namespace gable::data {

namespace {

// Which source positions make one target position, and how much each counts (sum 1).
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> triangle_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - radius)));
    const auto last = std::min<int64_t>(from, static_cast<int64_t>(std::ceil(center + radius)));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t k = first; k < last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - center) / radius;
      weights.push_back(std::max(0.0, 1.0 - distance));
      sum += weights.back();
    }
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    for (double w : weights) taps.weights.push_back(static_cast<float>(w / sum));
  }
  return all;
}

}  // namespace

Image resize(const ImageView& image, int64_t height, int64_t width) {
  check(image.height > 0 && image.width > 0 && image.channels > 0, "resize",
        "expected an image with pixels, got ", image.height, " x ", image.width, " x ",
        image.channels);
  check(height > 0 && width > 0, "resize", "expected a size of at least 1 x 1, got ", height, " x ",
        width);
  const int64_t channels = image.channels;
  const std::vector<Taps> columns = triangle_taps(image.width, width);
  const std::vector<Taps> rows = triangle_taps(image.height, height);

  std::vector<float> wide(static_cast<size_t>(image.height * width * channels));
  float* out = wide.data();
  for (int64_t y = 0; y < image.height; ++y) {
    for (const Taps& taps : columns) {
      const uint8_t* source = image.pixels + (y * image.width + taps.first) * channels;
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k)
          sum +=
              taps.weights[k] * static_cast<float>(source[static_cast<int64_t>(k) * channels + c]);
        *out++ = sum;
      }
    }
  }

  Image result{height, width, channels, {}};
  result.pixels.resize(static_cast<size_t>(height * width * channels));
  const int64_t row = width * channels;
  uint8_t* pixel = result.pixels.data();
  for (const Taps& taps : rows) {
    for (int64_t x = 0; x < row; ++x) {
      float sum = 0;
      for (size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] *
               wide[static_cast<size_t>((taps.first + static_cast<int64_t>(k)) * row + x)];
      *pixel++ = static_cast<uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
  return result;
}

Image read_image(const std::filesystem::path& path) {
  const std::vector<uint8_t> bytes = detail::read_file("read_image", path);
  check<FormatError>(bytes.size() >= 2 && bytes[0] == 0xFF && bytes[1] == 0xD8, "read_image",
                     "expected a JPEG image, got \"", path.string(), "\", whose ", bytes.size(),
                     " bytes do not begin with FF D8");
  return decode_jpeg(bytes, path.string());
}

}  // namespace gable::data
