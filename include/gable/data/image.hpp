// SPDX-License-Identifier: Apache-2.0
// 8-bit images in memory; reading JPEG; resizing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace gable::data {

/// Pixels of somebody else: rows of pixels of channels, dense (H, W, C), 8 bits a channel.
struct ImageView {
  const uint8_t* pixels = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  [[nodiscard]] int64_t size() const { return height * width * channels; }
};

/// An image that owns its pixels (H, W, C).
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<uint8_t> pixels;

  [[nodiscard]] ImageView view() const { return {pixels.data(), height, width, channels}; }
};

/// Decodes a JPEG to (H, W, 3) RGB; grey images get three equal channels. `name` stands in
/// messages. Throws FormatError, with the byte, for anything that is not one whole, undamaged
/// JPEG: what libjpeg only warns of (data cut short, bad codes) is an error here, so that no
/// image is ever filled up with grey. CMYK and images above 2^27 pixels are refused.
[[nodiscard]] Image decode_jpeg(std::span<const uint8_t> bytes, std::string_view name = "memory");

/// Reads a JPEG file; the name's ending does not matter. Throws FormatError naming the file.
[[nodiscard]] Image read_image(const std::filesystem::path& path);

/// Resamples with a triangle filter, widened where the image shrinks (so that every source pixel
/// counts) and bilinear where it grows. Throws ShapeError for empty images or sizes below 1.
[[nodiscard]] Image resize(const ImageView& image, int64_t height, int64_t width);

}  // namespace gable::data
