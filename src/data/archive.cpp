// SPDX-License-Identifier: Apache-2.0
// Members of tar archives through libarchive.
#include "archive.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <utility>

#include <archive.h>
#include <archive_entry.h>

namespace gable::data::detail {

namespace {

class Reader {
 public:
  Reader(Where where, const std::filesystem::path& path)
      : where_(where), path_(path), archive_(archive_read_new()) {
    check<Error>(archive_ != nullptr, where_, "expected memory for an archive reader, got none");
    // Not all filters: some of libarchive's run programs.
    archive_read_support_filter_gzip(archive_.get());
    archive_read_support_filter_bzip2(archive_.get());
    archive_read_support_filter_xz(archive_.get());
    archive_read_support_filter_zstd(archive_.get());
    archive_read_support_format_tar(archive_.get());
    constexpr size_t kBlock = size_t{1} << 18;
    if (archive_read_open_filename(archive_.get(), path_.c_str(), kBlock) != ARCHIVE_OK)
      fail_read("");
  }

  /// The next member's name; false at the end.
  bool next(std::string& name) {
    const int status = archive_read_next_header(archive_.get(), &entry_);
    if (status == ARCHIVE_EOF) {
      check_end();
      return false;
    }
    // A warning with a name is one about the locale: the name's bytes are there all the same.
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail_read(name);
    const char* bytes = archive_entry_pathname(entry_);
    if (bytes == nullptr) bytes = archive_entry_pathname_utf8(entry_);
    if (bytes == nullptr) fail_read(name);
    name = bytes;
    return true;
  }

  [[nodiscard]] bool is_file() const { return archive_entry_filetype(entry_) == AE_IFREG; }

  std::vector<uint8_t> read(const std::string& name) {
    const int64_t size = archive_entry_size(entry_);
    check<FormatError>(size <= kMostBytes - taken_, where_, "expected members of at most ",
                       kMostBytes, " bytes together, got \"", path_.string(), "\", member \"", name,
                       "\" of ", size, " after ", taken_);
    taken_ += size;
    std::vector<uint8_t> bytes;
    // Grown as data comes: the size in a damaged header may be anything.
    constexpr int64_t kFirst = int64_t{1} << 20;
    bytes.resize(static_cast<size_t>(std::clamp<int64_t>(size, 1, kFirst)));
    size_t used = 0;
    while (true) {
      const la_ssize_t got =
          archive_read_data(archive_.get(), bytes.data() + used, bytes.size() - used);
      if (got < 0) fail_read(name);
      if (got == 0) break;
      used += static_cast<size_t>(got);
      if (used == bytes.size()) bytes.resize(2 * used);
    }
    bytes.resize(used);
    if (static_cast<int64_t>(used) != size) fail_read(name);
    return bytes;
  }

 private:
  [[noreturn]] void fail_read(const std::string& name) const {
    const char* reason = archive_error_string(archive_.get());
    fail<FormatError>(where_, "expected a whole tar archive, got \"", path_.string(), "\"",
                      name.empty() ? "" : concat(", member \"", name, "\""), ": ",
                      reason == nullptr ? "the data ends early" : reason, " at byte ",
                      std::max<int64_t>(0, archive_filter_bytes(archive_.get(), 0)));
  }

  // libarchive takes the end of the file as the end of the archive, so that a tar cut between
  // two members would pass. Compressed ones have an end of their own.
  void check_end() {
    const int64_t read = archive_filter_bytes(archive_.get(), 0);
    if (archive_filter_code(archive_.get(), 0) != ARCHIVE_FILTER_NONE) return;
    std::ifstream file(path_, std::ios::binary | std::ios::ate);
    const auto size = static_cast<int64_t>(file.tellg());
    constexpr int64_t kBlock = 512;
    std::array<char, kBlock> last{};
    file.seekg(std::max<int64_t>(0, size - kBlock));
    file.read(last.data(), std::min(size, kBlock));
    check<FormatError>(
        file.good() && std::all_of(last.begin(), last.end(), [](char c) { return c == 0; }), where_,
        "expected a whole tar archive, got \"", path_.string(),
        "\", which has no end mark at byte ", read);
  }

  struct Free {
    void operator()(archive* a) const { archive_read_free(a); }
  };
  // A few compressed kilobytes may claim to be anything. CIFAR-10 is 184 MB.
  static constexpr int64_t kMostBytes = int64_t{4} << 30;
  int64_t taken_ = 0;
  Where where_;
  std::filesystem::path path_;
  std::unique_ptr<archive, Free> archive_;
  archive_entry* entry_ = nullptr;
};

}  // namespace

void read_archive(Where where, const std::filesystem::path& path,
                  const std::function<bool(const std::string& name)>& wanted,
                  const std::function<void(std::string name, std::vector<uint8_t> bytes)>& take) {
  Reader reader(where, path);
  std::string name;
  while (reader.next(name)) {
    if (!reader.is_file() || !wanted(name)) continue;
    std::vector<uint8_t> bytes = reader.read(name);
    take(name, std::move(bytes));
  }
}

}  // namespace gable::data::detail
