// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 from folders and archives, whole and broken.
#include "gable/data/cifar10.hpp"

#include <cmath>
#include <cstdlib>

#include "data_files.hpp"

namespace gable::data::test {
namespace {

constexpr int64_t kRecord = 3073;

// --- the binary version

Members binary_members(int64_t train_records, int64_t test_records) {
  Members members;
  for (int64_t k = 1; k <= 5; ++k)
    members.emplace_back(concat("data_batch_", k, ".bin"), batch_bytes(train_records, k));
  members.emplace_back("test_batch.bin", batch_bytes(test_records, 9));
  return members;
}

void write_folder(const fs::path& folder, const Members& members) {
  for (const auto& [name, bytes] : members) write_file(folder / name, bytes);
}

void expect_binary_set(const TrainTest& set, int64_t train_records, int64_t test_records) {
  ASSERT_EQ(set.train.size(), 5 * train_records);
  ASSERT_EQ(set.test.size(), test_records);
  EXPECT_EQ(set.train.images().shape(), (Shape{5 * train_records, 32, 32, 3}));
  EXPECT_EQ(set.train.class_names().front(), "airplane");
  EXPECT_EQ(set.train.class_names().back(), "truck");
  EXPECT_EQ(set.train.normalization(), Cifar10::kNormalization);
  for (int64_t i = 0; i < set.train.size(); ++i) {
    const int64_t seed = 1 + i / train_records;
    const int64_t record = i % train_records;
    EXPECT_EQ(set.train.labels()(i), (seed + record) % 10);
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_EQ(set.train.images()(i, 0, 31, c), batch_pixel(seed, record, 0, 31, c));
      EXPECT_EQ(set.train.images()(i, 30, 2, c), batch_pixel(seed, record, 30, 2, c));
    }
  }
  EXPECT_EQ(set.test.get(1).label, 0);
  EXPECT_EQ(set.test.get(1).image.pixels[1], batch_pixel(9, 1, 0, 0, 1));
}

TEST(CifarBinary, FolderNestedFolderAndArchives) {
  const TempFolder folder;
  const Members members = binary_members(3, 4);
  Members nested = {{"cifar-10-batches-bin/readme.html", {'h', 'i'}}};
  for (const auto& [name, bytes] : members)
    nested.emplace_back("cifar-10-batches-bin/" + name, bytes);
  write_folder(folder / "flat", members);
  write_folder(folder / "outer", nested);
  write_tar(folder / "cifar.tar", nested);
  write_tar(folder / "cifar-10-binary.tar.gz", nested, Tar::ustar_gz);
  for (const char* name : {"flat", "outer", "cifar.tar", "cifar-10-binary.tar.gz"}) {
    SCOPED_TRACE(name);
    expect_binary_set(Cifar10::open(folder / name), 3, 4);
    EXPECT_EQ(Cifar10::open(folder / name, Split::test).size(), 4);
  }
  fs::remove(folder / "flat/test_batch.bin");
  EXPECT_EQ(Cifar10::open(folder / "flat", Split::train).size(), 15);
}

TEST(CifarBinary, BrokenFiles) {
  const auto expect = [](const std::string& name, const Bytes& bytes,
                         std::initializer_list<std::string> parts) {
    SCOPED_TRACE(name);
    Members members = binary_members(3, 3);
    for (auto& [member, content] : members)
      if (member == name) content = bytes;
    const TempFolder folder;
    write_folder(folder / "set", members);
    write_tar(folder / "set.tar", members);
    for (const char* form : {"set", "set.tar"}) {
      expect_error<FormatError>([&] { (void)Cifar10::open(folder / form); },
                                {"[cifar10]", (folder / form).string(), name});
      expect_error<FormatError>([&] { (void)Cifar10::open(folder / form); }, parts);
    }
  };
  const Bytes good = batch_bytes(3, 3);
  expect("data_batch_3.bin", first_bytes(good, 5000),
         {"5000 bytes", "record 1 at byte 3073 is cut"});
  Bytes longer = good;
  longer.push_back(1);
  expect("test_batch.bin", longer, {"record 3 at byte 9219"});
  expect("data_batch_5.bin", {}, {"empty"});
  Bytes bad_label = good;
  bad_label[2 * kRecord] = 10;
  expect("data_batch_1.bin", bad_label, {"labels 0 .. 9, got 10", "record 2 at byte 6146"});
}

// 5000 records are half a file: whole records, but the files beside it tell.
TEST(CifarBinary, HalfABatchBesideOfficialOnes) {
  const TempFolder folder;
  Members members = binary_members(1, 1);
  members[0].second.assign(10'000 * kRecord, 0);
  members[5].second.assign(5'000 * kRecord, 0);
  write_folder(folder / "set", members);
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "set", Split::test); },
                            {"test_batch.bin", "10000 records", "after 5000 at byte 15365000"});
}

TEST(CifarBinary, MissingFiles) {
  const TempFolder folder;
  Members members = binary_members(1, 1);
  members.erase(members.begin() + 3);
  write_folder(folder / "set", members);
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "set"); },
                            {"data_batch_4.bin", (folder / "set").string()});
  EXPECT_EQ(Cifar10::open(folder / "set", Split::test).size(), 1);

  write_file(folder / "python/data_batch_1", {1, 2, 3});
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "python"); }, {"Python"});
}

TEST(Cifar, PathsThatHoldNothing) {
  const TempFolder folder;
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "absent"); },
                            {"[cifar10]", (folder / "absent").string(), "No such file"});
  expect_error<FormatError>([] { (void)Cifar10::open(""); }, {"No such file"});
  fs::create_directories(folder / "empty");
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "empty"); }, {"neither"});
  write_file(folder / "empty.tar", {});
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "empty.tar"); }, {"empty.tar"});
  write_file(folder / "zeros.tar", Bytes(1024, 0));  // a valid tar without members
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "zeros.tar"); }, {"neither"});
  write_file(folder / "text.tar", Bytes(3000, 'x'));
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "text.tar"); }, {"text.tar"});
  write_tar(folder / "other.tar", {{"train/a.jpg", {1}}, {"train/cat/readme.txt", {2}}});
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "other.tar"); }, {"neither"});
}

// --- JPEG files

Members jpeg_members() {
  return {{"test/cat/1.jpg", small_jpeg(1)},
          {"test/ape/2.jpg", small_jpeg(2)},
          {"train/dog/10.jpg", small_jpeg(3)},
          {"train/cat/2.JPG", small_jpeg(4)},
          {"train/cat/1.jpeg", small_jpeg(5)},
          {"train/cat/._1.jpg", {1, 2, 3}},
          {"train/cat/notes.txt", {'n', 'o'}},
          {"train/été/chat_é.jpg", small_jpeg(6)},
          {"train/cat/grey.jpg", encode_jpeg(gradient_image(32, 32, 1))}};
}

void expect_jpeg_set(const TrainTest& set) {
  EXPECT_EQ(set.train.class_names(), (std::vector<std::string>{"ape", "cat", "dog", "été"}));
  EXPECT_EQ(set.test.class_names(), set.train.class_names());
  EXPECT_EQ(set.train.labels().to_vector(), (std::vector<int64_t>{1, 1, 1, 2, 3}));
  EXPECT_EQ(set.test.labels().to_vector(), (std::vector<int64_t>{0, 1}));
  const std::vector<Bytes> files = {small_jpeg(5), small_jpeg(4),
                                    encode_jpeg(gradient_image(32, 32, 1)), small_jpeg(3),
                                    small_jpeg(6)};
  for (size_t i = 0; i < files.size(); ++i) {
    const ImageView view = set.train.get(static_cast<int64_t>(i)).image;
    EXPECT_EQ(Bytes(view.pixels, view.pixels + view.size()), decode_jpeg(files[i]).pixels) << i;
  }
}

TEST(CifarJpeg, FolderAndArchives) {
  const TempFolder folder;
  write_folder(folder / "set", jpeg_members());
  Members nested;
  for (const auto& [name, bytes] : jpeg_members()) nested.emplace_back("./cifar/" + name, bytes);
  write_tar(folder / "ustar.tar", jpeg_members());
  write_tar(folder / "pax.tar", jpeg_members(), Tar::pax);
  write_tar(folder / "nested.tar.gz", nested, Tar::ustar_gz);
  for (const char* form : {"set", "ustar.tar", "pax.tar", "nested.tar.gz"}) {
    SCOPED_TRACE(form);
    expect_jpeg_set(Cifar10::open(folder / form));
    EXPECT_EQ(Cifar10::open(folder / form, Split::test).classes(), 4);
  }
}

TEST(CifarJpeg, BrokenImages) {
  const auto expect = [](const std::string& name, const Bytes& bytes,
                         std::initializer_list<std::string> parts) {
    SCOPED_TRACE(name);
    const TempFolder folder;
    Members members = jpeg_members();
    members.emplace_back(name, bytes);
    write_folder(folder / "set", members);
    write_tar(folder / "set.tar", members);
    for (const char* form : {"set", "set.tar"}) {
      expect_error<FormatError>([&] { (void)Cifar10::open(folder / form); },
                                {"[cifar10]", (folder / form).string(), name});
      expect_error<FormatError>([&] { (void)Cifar10::open(folder / form); }, parts);
      (void)Cifar10::open(folder / form, Split::test);  // does not look at the training images
    }
  };
  const Bytes good = small_jpeg();
  const size_t half = good.size() / 2;
  expect("train/dog/half.jpg", first_bytes(good, half), {concat("at byte ", half, " of ", half)});
  expect("train/été/moitié.jpg", first_bytes(good, half), {"ends early"});
  expect("train/dog/empty.jpg", {}, {"at byte 0 of 0"});
  expect("train/dog/text.jpg", Bytes(600, 'x'), {"at byte"});
  expect("train/dog/big.jpg", encode_jpeg(gradient_image(32, 33, 3)),
         {"32 x 32 pixels", "with 33 x 32"});
}

TEST(CifarJpeg, TheFirstOfSeveralBrokenImagesIsNamed) {
  const TempFolder folder;
  Members members;
  for (int i = 0; i < 600; ++i)
    members.emplace_back(concat("train/a/", 1000 + i, ".jpg"),
                         i % 250 == 249 ? Bytes{} : small_jpeg());
  write_tar(folder / "set.tar", members);
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "set.tar", Split::train); },
                            {"train/a/1249.jpg"});
}

TEST(CifarJpeg, ASplitThatIsAbsent) {
  const TempFolder folder;
  write_tar(folder / "set.tar", {{"train/a/1.jpg", small_jpeg()}});
  EXPECT_EQ(Cifar10::open(folder / "set.tar", Split::train).size(), 1);
  expect_error<FormatError>([&] { (void)Cifar10::open(folder / "set.tar"); }, {"test/CLASS/*.jpg"});
}

// --- G14: cut archives

TEST(CifarJpeg, G14CutTarNamesMemberAndByte) {
  const TempFolder folder;
  const Members members = {{"test/x/a.jpg", small_jpeg(1)},
                           {"train/x/b.jpg", small_jpeg(2)},
                           {"train/x/été_01.jpg", small_jpeg(3)}};
  write_tar(folder / "whole.tar", members);
  const Bytes whole = read_bytes(folder / "whole.tar");
  const auto padded = [](size_t n) { return 512 + (n + 511) / 512 * 512; };
  const size_t third = padded(members[0].second.size()) + padded(members[1].second.size());
  write_file(folder / "cut.tar", first_bytes(whole, third + 512 + 200));
  expect_error<FormatError>(
      [&] { (void)Cifar10::open(folder / "cut.tar"); },
      {"[cifar10]", (folder / "cut.tar").string(), "train/x/été_01.jpg", "at byte"});
  // A cut anywhere before the end mark, also between members, is an error.
  const size_t end = third + padded(members[2].second.size());
  for (size_t size = 0; size <= end; size += 128) {
    write_file(folder / "cut.tar", first_bytes(whole, size));
    expect_error<FormatError>([&] { (void)Cifar10::open(folder / "cut.tar"); }, {"cut.tar"});
  }
  (void)Cifar10::open(folder / "whole.tar");  // errors leave nothing behind
}

TEST(CifarJpeg, G14CutGzip) {
  const TempFolder folder;
  write_tar(folder / "whole.tar.gz",
            {{"test/x/a.jpg", small_jpeg(1)}, {"train/x/b.jpg", small_jpeg(2)}}, Tar::ustar_gz);
  const Bytes whole = read_bytes(folder / "whole.tar.gz");
  for (size_t size = 0; size + 64 < whole.size(); size += 16) {
    write_file(folder / "cut.tar.gz", first_bytes(whole, size));
    expect_error<FormatError>([&] { (void)Cifar10::open(folder / "cut.tar.gz"); }, {"cut.tar.gz"});
  }
}

// --- the real files, where they are

TEST(CifarReal, OpensAll) {
  const char* path = std::getenv("GABLE_CIFAR10");
  if (path == nullptr || *path == '\0') GTEST_SKIP() << "GABLE_CIFAR10 is not set";
  const TrainTest set = Cifar10::open(path);
  ASSERT_EQ(set.train.size(), 50'000);
  ASSERT_EQ(set.test.size(), 10'000);
  EXPECT_EQ(set.train.classes(), 10);
  EXPECT_EQ(set.train.class_names()[1], "automobile");
  std::vector<int64_t> counts(10);
  for (int64_t label : set.train.labels().to_vector()) ++counts[static_cast<size_t>(label)];
  EXPECT_EQ(counts, std::vector<int64_t>(10, 5'000));
  const Normalization measured = measure_normalization(set.train);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(measured.mean[c], Cifar10::kNormalization.mean[c], 0.5);
    EXPECT_NEAR(measured.stddev[c], Cifar10::kNormalization.stddev[c], 1.0);
  }
}

}  // namespace
}  // namespace gable::data::test
