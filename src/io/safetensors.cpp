// SPDX-License-Identifier: Apache-2.0
// Reading and writing safetensors.
#include "gable/io/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gable/io/atomic_file.hpp"
#include "safetensors_header.hpp"

namespace gable::io {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace {

// The format's own limit, which keeps a wild length from becoming a large allocation.
constexpr uint64_t kMaxHeader = 100'000'000;

// Bytes by position: a file or memory.
class Source {
 public:
  explicit Source(const std::filesystem::path& path)
      : Source(std::span<const std::byte>(), path.string()) {  // so that the destructor runs
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) fail_errno();
    struct stat info {};
    if (fstat(file_, &info) != 0) fail_errno();
    if (S_ISDIR(info.st_mode)) {
      errno = EISDIR;
      fail_errno();
    }
    size_ = static_cast<uint64_t>(info.st_size);
  }
  Source(std::span<const std::byte> bytes, std::string_view name)
      : name_(name), memory_(bytes), size_(bytes.size()) {}
  ~Source() {
    if (file_ >= 0) close(file_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  void read(uint64_t offset, void* to, size_t n) const {
    if (n == 0) return;
    if (file_ < 0) {
      std::memcpy(to, memory_.data() + offset, n);
      return;
    }
    auto* at = static_cast<char*>(to);
    while (n > 0) {
      const ssize_t got = pread(file_, at, n, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_errno();
      check<FormatError>(got > 0, "safetensors", "expected ", size_, " bytes, got ", name_,
                         " that ends at byte ", offset);
      at += got;
      offset += static_cast<uint64_t>(got);
      n -= static_cast<size_t>(got);
    }
  }

 private:
  [[noreturn]] void fail_errno() const {
    fail<FileError>("safetensors", "expected a readable file, got ", name_, ": ",
                    std::strerror(errno));
  }
  std::string name_;
  std::span<const std::byte> memory_;
  uint64_t size_ = 0;
  int file_ = -1;
};

struct Located {
  Header header;
  uint64_t data_start = 0;
};

Located read_header(const Source& source) {
  uint64_t length = 0;
  check<FormatError>(source.size() >= 8, "safetensors", "expected at least 8 bytes, got ",
                     source.name(), " of ", source.size(), " bytes");
  source.read(0, &length, 8);
  check<FormatError>(length <= source.size() - 8, "safetensors",
                     "expected a header that ends by byte ", source.size(), ", got ", source.name(),
                     " with a header length of ", length, " (byte 0)");
  check<FormatError>(length <= kMaxHeader, "safetensors", "expected a header of at most ",
                     kMaxHeader, " bytes, got ", source.name(), " with ", length, " (byte 0)");
  std::string json(length, '\0');
  source.read(8, json.data(), json.size());
  return {parse_header(json, source.size() - 8 - length, source.name()), 8 + length};
}

Safetensors read_all(const Source& source) {
  Located located = read_header(source);
  Safetensors out;
  out.metadata = std::move(located.header.metadata);
  for (const HeaderEntry& e : located.header.entries) {
    const AnyTensor tensor = AnyTensor::empty(Layout(e.shape), e.dtype);
    source.read(located.data_start + e.begin, tensor.data(), static_cast<size_t>(tensor.bytes()));
    if (e.dtype == DType::boolean) {  // any other byte in a bool is undefined behaviour
      const auto* bytes = static_cast<const unsigned char*>(tensor.data());
      const auto* bad = std::find_if(bytes, bytes + tensor.bytes(), [](auto b) { return b > 1; });
      check<FormatError>(bad == bytes + tensor.bytes(), "safetensors", "tensor \"", e.name,
                         "\": expected bools of 0 and 1, got another value at byte ",
                         located.data_start + e.begin + static_cast<uint64_t>(bad - bytes), " of ",
                         source.name());
    }
    out.tensors.add(e.name, tensor);
  }
  return out;
}

// Widest elements first, otherwise in the caller's order.
std::vector<StateDict::Entry> file_order(const StateDict& tensors) {
  std::vector<StateDict::Entry> out;
  for (const auto& [name, tensor] : tensors) {
    check<TypeError>(tensor.defined(), "safetensors", "expected defined tensors, got \"", name,
                     "\" undefined");
    check<FormatError>(name != "__metadata__", "safetensors",
                       "expected names of tensors, got the reserved \"__metadata__\"");
    out.emplace_back(name, tensor);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return size_of(a.second.dtype()) > size_of(b.second.dtype());
  });
  return out;
}

std::string header_text(const std::vector<StateDict::Entry>& entries, const Metadata& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  int64_t at = 0;
  for (const auto& [name, tensor] : entries) {
    nlohmann::ordered_json& e = json[name];
    e["dtype"] = safetensors_name(tensor.dtype());
    e["shape"] = std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end());
    e["data_offsets"] = {at, at + tensor.bytes()};
    at += tensor.bytes();
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception& e) {
    fail<FormatError>("safetensors", "expected names and metadata in UTF-8, got ", e.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts aligned
  return text;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const Metadata& metadata) {
  const std::vector<StateDict::Entry> entries = file_order(tensors);
  const std::string header = header_text(entries, metadata);
  const auto length = static_cast<uint64_t>(header.size());
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto& [name, tensor] : entries) {
    const AnyTensor dense = tensor.to(kCpu).contiguous();
    file.write({static_cast<const std::byte*>(dense.data()), static_cast<size_t>(dense.bytes())});
  }
  file.commit();
}

Safetensors load_safetensors(const std::filesystem::path& path) { return read_all(Source(path)); }

Safetensors parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return read_all(Source(bytes, name));
}

Metadata load_safetensors_metadata(const std::filesystem::path& path) {
  return read_header(Source(path)).header.metadata;
}

}  // namespace gable::io
