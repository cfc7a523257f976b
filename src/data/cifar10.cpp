// SPDX-License-Identifier: Apache-2.0
// CIFAR-10: from the bytes of its files to a dataset.
#include "gable/data/cifar10.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cifar10_files.hpp"
#include "gable/core/parallel.hpp"
#include "jpeg.hpp"

namespace gable::data {

namespace {

using detail::BatchFile;
using detail::CifarFiles;
using detail::ImageFile;

constexpr const char* kOp = "cifar10";
constexpr int64_t kSide = 32;
constexpr int64_t kPlane = kSide * kSide;
constexpr int64_t kPixels = 3 * kPlane;
constexpr int64_t kRecord = 1 + kPixels;
constexpr int64_t kOfficialRecords = 10'000;
const std::vector<std::string>& official_names() {
  static const std::vector<std::string> names = {
      "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return names;
}

const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

// --- the binary version

int64_t records(const BatchFile& file) { return static_cast<int64_t>(file.bytes.size()) / kRecord; }

const BatchFile& find_batch(const CifarFiles& files, const std::string& name) {
  const auto same = [&](const BatchFile& file) { return file.name == name; };
  const auto it = std::find_if(files.batches.begin(), files.batches.end(), same);
  check<FormatError>(it != files.batches.end(), kOp, "expected ", name, " in \"", files.path,
                     "\", got none");
  return *it;
}

void check_batch(const BatchFile& file, bool official) {
  const auto size = static_cast<int64_t>(file.bytes.size());
  check<FormatError>(size > 0, kOp, "expected records of ", kRecord, " bytes, got \"", file.label,
                     "\", which is empty (byte 0)");
  check<FormatError>(size % kRecord == 0, kOp, "expected whole records of ", kRecord,
                     " bytes, got \"", file.label, "\" of ", size, " bytes, whose record ",
                     records(file), " at byte ", records(file) * kRecord, " is cut");
  // Half of a batch is a whole number of records; files beside it tell that it is cut.
  check<FormatError>(!official || records(file) == kOfficialRecords, kOp, "expected ",
                     kOfficialRecords, " records as in the other batches, got \"", file.label,
                     "\", which ends after ", records(file), " at byte ", size);
  for (int64_t i = 0; i < records(file); ++i) {
    const uint8_t label = file.bytes[static_cast<size_t>(i * kRecord)];
    check<FormatError>(label <= 9, kOp, "expected labels 0 .. 9, got ", label, " in \"", file.label,
                       "\", record ", i, " at byte ", i * kRecord);
  }
}

ImageDataset build_batches(const CifarFiles& files, Split split) {
  std::vector<const BatchFile*> parts;
  if (split == Split::test) {
    parts.push_back(&find_batch(files, "test_batch.bin"));
  } else {
    for (char digit = '1'; digit <= '5'; ++digit)
      parts.push_back(&find_batch(files, concat("data_batch_", digit, ".bin")));
  }
  const bool official = std::any_of(files.batches.begin(), files.batches.end(),
                                    [](const auto& f) { return records(f) == kOfficialRecords; });
  int64_t count = 0;
  for (const BatchFile* part : parts) {
    check_batch(*part, official);
    count += records(*part);
  }
  Tensor<uint8_t> images({count, kSide, kSide, 3});
  Tensor<int64_t> labels({count});
  uint8_t* pixel = images.data();
  int64_t* label = labels.data();
  for (const BatchFile* part : parts) {
    for (auto it = part->bytes.begin(); it != part->bytes.end(); it += kRecord) {
      *label++ = *it;
      for (int64_t i = 1; i <= kPlane; ++i)  // planes of red, green, blue to pixels
        for (int64_t c = 0; c < 3; ++c) *pixel++ = it[c * kPlane + i];
    }
  }
  return {std::move(images), std::move(labels), official_names(), Cifar10::kNormalization};
}

// --- JPEG files

// Decodes in parallel. Of several broken files the first is reported, for any thread count.
void decode_all(const std::vector<const ImageFile*>& files, uint8_t* pixels) {
  std::mutex mutex;
  int64_t failed = static_cast<int64_t>(files.size());
  std::exception_ptr error;
  parallel_for(static_cast<int64_t>(files.size()), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ImageFile& file = *files[static_cast<size_t>(i)];
      try {
        detail::decode_jpeg_into(kOp, file.bytes, file.label, kSide, kSide, pixels + i * kPixels);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
        return;
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

ImageDataset build_images(const CifarFiles& files, Split split) {
  std::vector<const ImageFile*> members;
  for (const ImageFile& file : files.images)
    if (file.split == split) members.push_back(&file);
  check<FormatError>(!members.empty(), kOp, "expected ", name_of(split), "/CLASS/*.jpg in \"",
                     files.path, "\", got none");
  std::sort(members.begin(), members.end(), [](const ImageFile* a, const ImageFile* b) {
    return std::tie(a->class_name, a->file) < std::tie(b->class_name, b->file);
  });
  const auto count = static_cast<int64_t>(members.size());
  Tensor<uint8_t> images({count, kSide, kSide, 3});
  Tensor<int64_t> labels({count});
  decode_all(members, images.data());
  for (int64_t i = 0; i < count; ++i) {
    const auto it = files.class_names.find(members[static_cast<size_t>(i)]->class_name);
    labels.data()[i] = std::distance(files.class_names.begin(), it);
  }
  return {std::move(images),
          std::move(labels),
          {files.class_names.begin(), files.class_names.end()},
          Cifar10::kNormalization};
}

ImageDataset build(const CifarFiles& files, Split split) {
  return files.batches.empty() ? build_images(files, split) : build_batches(files, split);
}

}  // namespace

TrainTest Cifar10::open(const std::filesystem::path& path) {
  const CifarFiles files = detail::read_cifar_files(path, std::nullopt);
  return {build(files, Split::train), build(files, Split::test)};
}

ImageDataset Cifar10::open(const std::filesystem::path& path, Split split) {
  return build(detail::read_cifar_files(path, split), split);
}

}  // namespace gable::data
