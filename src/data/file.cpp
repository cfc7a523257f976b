// SPDX-License-Identifier: Apache-2.0
// Whole files into memory.
#include "file.hpp"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace gable::data::detail {

std::vector<uint8_t> read_file(Where where, const std::filesystem::path& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const auto reason = [] { return std::generic_category().message(errno); };
  errno = 0;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  check<FormatError>(file != nullptr, where, "expected a readable file, got \"", path.string(),
                     "\": ", reason());
  std::vector<uint8_t> bytes;
  size_t used = 0;
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  bytes.resize(ignored ? 4096 : static_cast<size_t>(size) + 1);  // + 1: see the end in one read
  while (true) {
    const size_t got = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += got;
    check<FormatError>(std::ferror(file.get()) == 0, where, "expected a readable file, got \"",
                       path.string(), "\": ", reason(), " at byte ", used);
    if (std::feof(file.get()) != 0) break;
    if (used == bytes.size()) bytes.resize(2 * bytes.size());
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace gable::data::detail
