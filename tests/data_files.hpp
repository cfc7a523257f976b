// SPDX-License-Identifier: Apache-2.0
// Files that the data tests make: folders, JPEGs, tar archives, CIFAR-10 batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <archive.h>
#include <archive_entry.h>
#include <jpeglib.h>

#include "gable/core/error.hpp"
#include "gable/data/image.hpp"

namespace gable::data::test {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

/// A folder that goes with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "gable-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline void write_file(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

inline Bytes read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline Bytes first_bytes(const Bytes& bytes, size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// A smooth image that differs with `tint`.
inline Image gradient_image(int64_t height, int64_t width, int64_t channels, int tint = 0) {
  Image image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((3 * x + 2 * y + 60 * c + tint) % 200 + 20));
  return image;
}

inline Bytes encode_jpeg(const Image& image, bool progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                        : image.channels == 3 ? JCS_RGB
                                              : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> pixels = image.pixels;
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = pixels.data() + static_cast<size_t>(info.next_scanline) *
                                       static_cast<size_t>(image.width * image.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(buffer, buffer + size);
  std::free(buffer);
  return bytes;
}

inline Bytes small_jpeg(int tint = 0) { return encode_jpeg(gradient_image(32, 32, 3, tint)); }

using Members = std::vector<std::pair<std::string, Bytes>>;

enum class Tar { ustar, pax, ustar_gz };

inline void write_tar(const fs::path& path, const Members& members, Tar kind = Tar::ustar) {
  archive* out = archive_write_new();
  if (kind == Tar::pax) archive_write_set_format_pax(out);
  if (kind != Tar::pax) archive_write_set_format_ustar(out);
  if (kind == Tar::ustar_gz) archive_write_add_filter_gzip(out);
  archive_write_open_filename(out, path.c_str());
  for (const auto& [name, bytes] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(out, entry);
    archive_write_data(out, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
}

/// Pixel (y, x, c) of record i of a batch that batch_bytes() made.
inline uint8_t batch_pixel(int64_t seed, int64_t i, int64_t y, int64_t x, int64_t c) {
  return static_cast<uint8_t>(31 * seed + 17 * i + 5 * y + 3 * x + 101 * c);
}

/// Records of the official binary version; record i has label (seed + i) mod 10.
inline Bytes batch_bytes(int64_t count, int64_t seed) {
  Bytes bytes;
  for (int64_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<uint8_t>((seed + i) % 10));
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < 32; ++y)
        for (int64_t x = 0; x < 32; ++x) bytes.push_back(batch_pixel(seed, i, y, x, c));
  }
  return bytes;
}

/// Runs f and expects E whose text has all `parts`.
template <class E, class F>
void expect_error(F&& f, std::initializer_list<std::string> parts) {
  try {
    f();
    ADD_FAILURE() << "expected an error, got none";
  } catch (const E& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << "expected \"" << part << "\" in: " << e.what();
  }
}

}  // namespace gable::data::test
