// SPDX-License-Identifier: Apache-2.0
// Reading JPEG and resizing.
#include "gable/data/image.hpp"

#include <cmath>
#include <cstring>

#include "data_files.hpp"

namespace gable::data::test {
namespace {

double mean_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST(DecodeJpeg, RoundTrip) {
  const Image image = gradient_image(45, 70, 3);
  for (bool progressive : {false, true}) {
    const Image decoded = decode_jpeg(encode_jpeg(image, progressive));
    EXPECT_EQ(decoded.height, 45);
    EXPECT_EQ(decoded.width, 70);
    EXPECT_EQ(decoded.channels, 3);
    EXPECT_LT(mean_difference(decoded, image), 6.0);
  }
}

TEST(DecodeJpeg, GreyHasThreeEqualChannels) {
  const Image image = decode_jpeg(encode_jpeg(gradient_image(20, 33, 1)));
  ASSERT_EQ(image.channels, 3);
  ASSERT_EQ(image.pixels.size(), 20U * 33U * 3U);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    EXPECT_EQ(image.pixels[i], image.pixels[i + 1]);
    EXPECT_EQ(image.pixels[i], image.pixels[i + 2]);
  }
}

// Wherever the data is cut, the image is refused, with the name and both numbers of bytes.
TEST(DecodeJpeg, EveryCutIsAnError) {
  for (bool progressive : {false, true}) {
    const Bytes whole = encode_jpeg(gradient_image(32, 32, 3), progressive);
    for (size_t size = 0; size < whole.size(); ++size)
      expect_error<FormatError>([&] { (void)decode_jpeg(first_bytes(whole, size), "été.jpg"); },
                                {"[decode_jpeg]", "\"été.jpg\"", concat(" of ", size)});
  }
}

TEST(DecodeJpeg, HalfAnImageNamesTheByte) {
  const Bytes whole = small_jpeg();
  expect_error<FormatError>(
      [&] { (void)decode_jpeg(first_bytes(whole, whole.size() / 2)); },
      {"ends early", concat("at byte ", whole.size() / 2, " of ", whole.size() / 2)});
}

TEST(DecodeJpeg, DamagedDataIsAnErrorOrAnImage) {
  const Bytes whole = small_jpeg();
  Bytes no_end = whole;  // an end mark in the middle of the data
  no_end[whole.size() * 3 / 4] = 0xFF;
  no_end[whole.size() * 3 / 4 + 1] = 0xD9;
  expect_error<FormatError>([&] { (void)decode_jpeg(no_end); }, {"Corrupt JPEG data", "at byte"});
  for (size_t at = 0; at < whole.size(); ++at) {  // for the sanitizers; a flip may stay unseen
    Bytes flipped = whole;
    flipped[at] ^= 0x10;
    try {
      (void)decode_jpeg(flipped);
    } catch (const FormatError&) {
      continue;
    }
  }
}

TEST(DecodeJpeg, OtherBytes) {
  expect_error<FormatError>([] { (void)decode_jpeg(Bytes{}); }, {"at byte 0 of 0"});
  expect_error<FormatError>([] { (void)decode_jpeg(Bytes(100, 'x')); }, {"JPEG"});
  expect_error<FormatError>([] { (void)decode_jpeg(encode_jpeg(gradient_image(8, 8, 4))); },
                            {"CMYK"});
}

TEST(DecodeJpeg, HugeSizesAreRefusedBeforeMemoryIsAsked) {
  Bytes bytes = small_jpeg();
  for (size_t i = 0; i + 9 < bytes.size(); ++i) {
    if (bytes[i] == 0xFF && bytes[i + 1] == 0xC0) {  // the frame header: height and width
      bytes[i + 5] = bytes[i + 7] = 0xFF;
      break;
    }
  }
  expect_error<FormatError>([&] { (void)decode_jpeg(bytes); }, {"at most", "65312 x 65312"});
}

TEST(ReadImage, FilesAndErrors) {
  const TempFolder folder;
  write_file(folder / "Bild äöü.jpg", small_jpeg(7));
  EXPECT_EQ(read_image(folder / "Bild äöü.jpg").pixels, decode_jpeg(small_jpeg(7)).pixels);

  const auto expect = [&](const std::string& name, std::initializer_list<std::string> parts) {
    expect_error<FormatError>([&] { (void)read_image(folder / name); }, {(folder / name).string()});
    expect_error<FormatError>([&] { (void)read_image(folder / name); }, parts);
  };
  expect("absent.jpg", {"[read_image]", "No such file"});
  write_file(folder / "empty.jpg", {});
  expect("empty.jpg", {"0 bytes"});
  write_file(folder / "picture.png", {0x89, 'P', 'N', 'G', 1, 2, 3});
  expect("picture.png", {"JPEG"});
  write_file(folder / "half.jpg", first_bytes(small_jpeg(), 300));
  expect("half.jpg", {"ends early at byte 300 of 300"});
  fs::create_directories(folder / "folder.jpg");
  expect("folder.jpg", {"Is a directory"});
}

TEST(Resize, KeepsConstantsAndTheSameSize) {
  const Image image = gradient_image(9, 7, 3);
  EXPECT_EQ(resize(image.view(), 9, 7).pixels, image.pixels);
  Image flat{5, 11, 2, Bytes(5 * 11 * 2, 77)};
  const Image resized = resize(flat.view(), 32, 3);
  EXPECT_EQ(resized.height, 32);
  EXPECT_EQ(resized.width, 3);
  EXPECT_EQ(resized.pixels, Bytes(32 * 3 * 2, 77));
}

TEST(Resize, ByHand) {
  const Image two{1, 2, 1, {0, 100}};
  // Centers of the targets at 0.25, 0.75, 1.25, 1.75; of the sources at 0.5 and 1.5.
  EXPECT_EQ(resize(two.view(), 1, 4).pixels, (Bytes{0, 25, 75, 100}));
  const Image four{1, 4, 1, {0, 80, 160, 240}};
  // Halved: weights 3/8, 3/8, 1/8 (and 1/8 outside, left out) around each center.
  EXPECT_EQ(resize(four.view(), 1, 2).pixels, (Bytes{57, 183}));
  const Image column{4, 1, 1, {0, 80, 160, 240}};
  EXPECT_EQ(resize(column.view(), 2, 1).pixels, (Bytes{57, 183}));
}

TEST(Resize, Errors) {
  const Image image = gradient_image(4, 4, 3);
  expect_error<ShapeError>([&] { (void)resize(image.view(), 0, 4); }, {"[resize]", "0 x 4"});
  expect_error<ShapeError>([&] { (void)resize(ImageView{}, 4, 4); }, {"[resize]", "0 x 0 x 0"});
}

}  // namespace
}  // namespace gable::data::test
