// SPDX-License-Identifier: Apache-2.0
// Finds the files of CIFAR-10 in a folder or an archive.
#include "cifar10_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <system_error>
#include <utility>

#include "archive.hpp"
#include "file.hpp"

namespace gable::data::detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* kOp = "cifar10";
constexpr std::array<std::string_view, 6> kBatchNames = {"data_batch_1.bin", "data_batch_2.bin",
                                                         "data_batch_3.bin", "data_batch_4.bin",
                                                         "data_batch_5.bin", "test_batch.bin"};

bool is_batch(std::string_view file) {
  return std::find(kBatchNames.begin(), kBatchNames.end(), file) != kBatchNames.end();
}

std::string_view file_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_jpeg_name(std::string_view file) {
  if (file.starts_with('.')) return false;  // also the "._x.jpg" that macOS puts beside x.jpg
  std::string lower(file);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

std::optional<Split> split_of(std::string_view folder) {
  if (folder == "train") return Split::train;
  if (folder == "test") return Split::test;
  return std::nullopt;
}

// ".../train|test/CLASS/FILE.jpg"
std::optional<ImageFile> parse_image(std::string_view path) {
  std::array<std::string_view, 3> parts;  // file, class, split
  for (std::string_view& part : parts) {
    part = file_part(path);
    path.remove_suffix(std::min(path.size(), part.size() + 1));
  }
  const std::optional<Split> split = split_of(parts[2]);
  if (!split || parts[1].empty() || !is_jpeg_name(parts[0])) return std::nullopt;
  return ImageFile{*split, std::string(parts[1]), std::string(parts[0]), {}, {}};
}

// Collects files and remembers what hints at another form of the set.
struct Collector {
  CifarFiles files;
  std::optional<Split> only;
  bool python_version = false;

  bool wants(std::string_view name) {
    if (file_part(name) == "data_batch_1") python_version = true;
    if (is_batch(file_part(name))) return true;
    const std::optional<ImageFile> image = parse_image(name);
    if (!image) return false;
    files.class_names.insert(image->class_name);
    return !only || image->split == *only;
  }
  void take(const std::string& name, std::string label, std::vector<uint8_t> bytes) {
    if (is_batch(file_part(name))) {
      files.batches.push_back({std::string(file_part(name)), std::move(label), std::move(bytes)});
    } else {
      ImageFile image = parse_image(name).value();
      image.label = std::move(label);
      image.bytes = std::move(bytes);
      files.images.push_back(std::move(image));
    }
  }
};

void collect_archive(Collector& out, const fs::path& path) {
  read_archive(
      kOp, path, [&](const std::string& name) { return out.wants(name); },
      [&](const std::string& name, std::vector<uint8_t> bytes) {
        out.take(name, concat(path.string(), ": ", name), std::move(bytes));
      });
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  check<FormatError>(!error, kOp, "expected a readable folder, got \"", folder.string(),
                     "\": ", error.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

void collect_files(Collector& out, const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& file : sorted_entries(folder)) {
    if (!fs::is_regular_file(file, ignored) || !out.wants(file.generic_string())) continue;
    out.take(file.generic_string(), file.string(), read_file(kOp, file));
  }
}

void collect_folder(Collector& out, const fs::path& folder) {
  std::error_code ignored;
  collect_files(out, folder);
  const fs::path batches = folder / "cifar-10-batches-bin";
  if (out.files.batches.empty() && fs::is_directory(batches, ignored)) collect_files(out, batches);
  if (!out.files.batches.empty()) return;
  for (const char* split : {"train", "test"}) {
    if (!fs::is_directory(folder / split, ignored)) continue;
    for (const fs::path& class_folder : sorted_entries(folder / split))
      if (fs::is_directory(class_folder, ignored)) collect_files(out, class_folder);
  }
}

}  // namespace

CifarFiles read_cifar_files(const fs::path& path, std::optional<Split> only) {
  Collector out{{path.string(), {}, {}, {}}, only};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check<FormatError>(fs::exists(status), kOp, "expected a folder or a tar archive, got \"",
                     path.string(),
                     "\": ", error ? error.message() : std::string("No such file or directory"));
  if (fs::is_directory(status)) {
    collect_folder(out, path);
  } else {
    collect_archive(out, path);
  }
  check<FormatError>(
      !out.files.batches.empty() || !out.files.class_names.empty(), kOp,
      "expected data_batch_*.bin or train|test/CLASS/*.jpg in \"", path.string(), "\", got ",
      out.python_version ? "the version for Python; the binary version is needed" : "neither");
  return std::move(out.files);
}

}  // namespace gable::data::detail
