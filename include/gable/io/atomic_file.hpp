// SPDX-License-Identifier: Apache-2.0
// AtomicFile: a file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "gable/core/error.hpp"

namespace gable::io {

/// A path that cannot be read or written; the message has the path and the system's reason.
class FileError : public Error {
  using Error::Error;
};

/// Writes to a temporary file in the target's folder; commit() makes the bytes durable (fsync)
/// and renames it over the target, so that a reader, or a crash, meets the old file or the new
/// one. Without commit() the destructor removes the temporary file and the target stays as it was.
class AtomicFile {
 public:
  /// Throws FileError if the folder is missing or not writable, or if `path` is there and not a
  /// regular file.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws FileError, for example when the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int file_ = -1;
};

/// Writes `text` as a whole file, atomically.
void write_file(const std::filesystem::path& path, std::string_view text);
/// Makes `folder` (and its parents) if need be and tries to write there. Throws FileError; leaves
/// nothing behind but the folder.
void require_writable_folder(const std::filesystem::path& folder);

}  // namespace gable::io
