// SPDX-License-Identifier: Apache-2.0
// Atomic files with POSIX calls.
#include "gable/io/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace gable::io {

namespace {

[[noreturn]] void fail_errno(const char* expected, const std::filesystem::path& path, int error) {
  fail<FileError>("file", "expected ", expected, ", got ", path.string(), ": ",
                  std::strerror(error));
}

// Makes the rename itself durable; file systems that cannot sync folders are fine.
void sync_folder(const std::filesystem::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0) {  // a rename would replace a device or a pipe
    if (S_ISDIR(info.st_mode)) fail_errno("a file to write", path_, EISDIR);
    check<FileError>(S_ISREG(info.st_mode), "file", "expected a regular file to write, got ",
                     path_.string());
  }
  do {  // a process of the same number, killed before, may have left its file
    temporary_ = path_;
    temporary_ += concat(".tmp-", static_cast<int64_t>(getpid()), "-", counter.fetch_add(1));
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) fail_errno("a writable path", path_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("room for the file", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  if (fsync(file_) != 0) fail_errno("a durable file", path_, errno);
  const int closed = close(file_);
  file_ = -1;
  if (closed != 0) fail_errno("a durable file", path_, errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno("a writable path", path_, errno);
  temporary_.clear();
  sync_folder(path_.has_parent_path() ? path_.parent_path() : std::filesystem::path("."));
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void require_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail_errno("a folder to write to", folder, error.value());
  if (!std::filesystem::is_directory(folder)) fail_errno("a folder to write to", folder, ENOTDIR);
  AtomicFile probe(folder / "writable");  // never committed
}

}  // namespace gable::io
