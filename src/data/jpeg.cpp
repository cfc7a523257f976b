// SPDX-License-Identifier: Apache-2.0
// JPEG decoding through libjpeg's C API, where warnings are errors.
#include "jpeg.hpp"

#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include "gable/data/image.hpp"

namespace gable::data {

namespace {

constexpr int kMaxScans =
    100;  // ordinary progressive images have 10; each is a pass over all pixels
constexpr int64_t kMaxPixels = int64_t{1} << 27;  // a header of a few bytes may claim gigabytes

// libjpeg reports errors by a call that must not return; throwing through its C frames is not
// defined, so it jumps back into one of the functions below, which hold nothing to destroy.
class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> bytes) : total_(bytes.size()) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { stop(*self(info)); };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) stop(*self(info));  // a warning: libjpeg would go on with invented data
    };
    info_.client_data = this;
    progress_.progress_monitor = [](j_common_ptr info) {
      if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans)
        stop(*self(info), "more scans than an image needs");
    };
    source_.next_input_byte = bytes.data();
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.fill_input_buffer = [](j_decompress_ptr info) -> boolean {
      end_of_data(info);
      return FALSE;
    };
    source_.skip_input_data = [](j_decompress_ptr info, long count) {
      if (count <= 0) return;
      if (static_cast<size_t>(count) > info->src->bytes_in_buffer) end_of_data(info);
      info->src->next_input_byte += count;
      info->src->bytes_in_buffer -= static_cast<size_t>(count);
    };
  }
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Reads up to the image's size. False on an error.
  bool read_header() {
    if (setjmp(jump_) != 0) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.src = &source_;
    info_.progress = &progress_;
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Decodes all rows to dense RGB and reads on to the end marker. False on an error.
  bool read_pixels(uint8_t* out) {
    if (setjmp(jump_) != 0) return false;
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    const size_t row = size_t{3} * info_.output_width;
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW target = out + row * info_.output_scanline;
      jpeg_read_scanlines(&info_, &target, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  [[nodiscard]] int64_t height() const { return info_.image_height; }
  [[nodiscard]] int64_t width() const { return info_.image_width; }
  [[nodiscard]] bool is_grey_or_rgb() const {
    return info_.jpeg_color_space == JCS_GRAYSCALE || info_.jpeg_color_space == JCS_YCbCr ||
           info_.jpeg_color_space == JCS_RGB;
  }

  [[noreturn]] void fail_format(Where where, std::string_view name) const {
    fail<FormatError>(where, "expected a whole JPEG image, got \"", name, "\": ", message_,
                      " at byte ", total_ - source_.bytes_in_buffer, " of ", total_);
  }

 private:
  static Decoder* self(j_common_ptr info) { return static_cast<Decoder*>(info->client_data); }
  [[noreturn]] static void stop(Decoder& decoder) {
    decoder.errors_.format_message(reinterpret_cast<j_common_ptr>(&decoder.info_),
                                   decoder.message_);
    std::longjmp(decoder.jump_, 1);
  }
  [[noreturn]] static void end_of_data(j_decompress_ptr info) {
    info->src->bytes_in_buffer = 0;
    stop(*static_cast<Decoder*>(info->client_data), "the data ends early");
  }
  [[noreturn]] static void stop(Decoder& decoder, const char* why) {
    std::snprintf(decoder.message_, sizeof decoder.message_, "%s", why);
    std::longjmp(decoder.jump_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  jmp_buf jump_{};
  char message_[JMSG_LENGTH_MAX] = {};
  size_t total_;
  bool created_ = false;
};

void open_image(Decoder& decoder, Where where, std::string_view name) {
  if (!decoder.read_header()) decoder.fail_format(where, name);
  check<FormatError>(decoder.is_grey_or_rgb(), where, "expected a grey or RGB JPEG image, got \"",
                     name, "\" with CMYK or other colours");
  check<FormatError>(decoder.height() * decoder.width() <= kMaxPixels, where,
                     "expected an image of at most ", kMaxPixels, " pixels, got \"", name,
                     "\" with ", decoder.width(), " x ", decoder.height());
}

}  // namespace

void detail::decode_jpeg_into(Where where, std::span<const uint8_t> bytes, std::string_view name,
                              int64_t height, int64_t width, uint8_t* out) {
  Decoder decoder(bytes);
  open_image(decoder, where, name);
  check<FormatError>(decoder.height() == height && decoder.width() == width, where,
                     "expected an image of ", width, " x ", height, " pixels, got \"", name,
                     "\" with ", decoder.width(), " x ", decoder.height());
  if (!decoder.read_pixels(out)) decoder.fail_format(where, name);
}

Image decode_jpeg(std::span<const uint8_t> bytes, std::string_view name) {
  Decoder decoder(bytes);
  open_image(decoder, "decode_jpeg", name);
  Image image{decoder.height(), decoder.width(), 3, {}};
  image.pixels.resize(static_cast<size_t>(image.height * image.width * 3));
  if (!decoder.read_pixels(image.pixels.data())) decoder.fail_format("decode_jpeg", name);
  return image;
}

}  // namespace gable::data
