// SPDX-License-Identifier: Apache-2.0
// Loader: content, order, determinism for any number of workers, errors, early ends.
#include "gable/data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

#include "data_files.hpp"

namespace gable::data::test {
namespace {

// Images made on the fly: pixel k of sample i is 8 i + k mod 251; some samples throw.
class Counting : public Dataset {
 public:
  explicit Counting(int64_t size, std::set<int64_t> broken = {}, int64_t other_size = -1)
      : size_(size), broken_(std::move(broken)), other_size_(other_size) {}
  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] Sample get(int64_t index) const override {
    if (broken_.count(index) != 0) fail<FormatError>("counting", "broken image");
    auto image = std::make_shared<Image>(Image{4, index == other_size_ ? 6 : 5, 3, {}});
    for (int64_t k = 0; k < image->height * image->width * 3; ++k)
      image->pixels.push_back(static_cast<uint8_t>((8 * index + k) % 251));
    return {image->view(), index % 7, image};
  }

 private:
  int64_t size_;
  std::set<int64_t> broken_;
  int64_t other_size_;
};

const Normalization kHalf = {.mean = {10, 20, 30, 0}, .stddev = {2, 4, 8, 1}};

struct Seen {
  std::vector<std::vector<float>> images;  // memory order: (N, H, W, C)
  std::vector<int64_t> labels;
  std::vector<int64_t> indices;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen read_all(Epoch epoch) {
  Seen seen;
  for (const Batch& batch : epoch) {
    EXPECT_TRUE(batch.images.is_contiguous(MemoryFormat::channels_last));
    seen.images.emplace_back(batch.images.data(), batch.images.data() + batch.images.numel());
    for (int64_t label : batch.labels.to_vector()) seen.labels.push_back(label);
    seen.indices.push_back(batch.index);
  }
  return seen;
}

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// A joined thread may stay in the list for a moment.
void expect_threads(int64_t count) {
  for (int i = 0; i < 500 && threads_of_process() != count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(threads_of_process(), count);
}

TEST(Loader, ContentInOrder) {
  const Loader loader(Counting(10), {.batch_size = 4, .transform = {.normalization = kHalf}});
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(loader.samples(), 10);
  int64_t sample = 0;
  for (const Batch& batch : loader.epoch(0)) {
    const int64_t count = batch.index < 2 ? 4 : 2;
    ASSERT_EQ(batch.images.shape(), (Shape{count, 3, 4, 5}));
    ASSERT_EQ(batch.labels.shape(), (Shape{count}));
    for (int64_t i = 0; i < count; ++i, ++sample) {
      EXPECT_EQ(batch.labels(i), sample % 7);
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t y = 0; y < 4; ++y)
          for (int64_t x = 0; x < 5; ++x) {
            const auto pixel = static_cast<float>((8 * sample + 3 * (5 * y + x) + c) % 251);
            const auto at = static_cast<size_t>(c);
            EXPECT_EQ(batch.images(i, c, y, x), (pixel - kHalf.mean[at]) / kHalf.stddev[at]);
          }
    }
  }
  EXPECT_EQ(sample, 10);
}

TEST(Loader, DropLast) {
  const Loader loader(Counting(10), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  EXPECT_EQ(loader.samples(), 8);
  EXPECT_EQ(read_all(loader.epoch(0)).labels.size(), 8U);
}

TEST(Loader, OrderIsAPermutationOfSeedAndEpoch) {
  const auto order = epoch_order(1000, 5, 3);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), int64_t{0});
  EXPECT_EQ(sorted, all);
  EXPECT_NE(order, all);
  EXPECT_EQ(order, epoch_order(1000, 5, 3));
  EXPECT_NE(order, epoch_order(1000, 5, 4));
  EXPECT_NE(order, epoch_order(1000, 6, 3));
  EXPECT_TRUE(epoch_order(0, 1, 1).empty());
  EXPECT_EQ(epoch_order(1, 1, 1), std::vector<int64_t>{0});
}

TEST(Loader, EpochsDifferAndRepeat) {
  const Loader loader(Counting(50), {.batch_size = 8, .shuffle = true, .seed = 1});
  const Seen first = read_all(loader.epoch(0));
  EXPECT_EQ(first, read_all(loader.epoch(0)));
  EXPECT_NE(first.labels, read_all(loader.epoch(1)).labels);
}

TEST(Loader, SameBatchesForAnyNumberOfWorkers) {
  LoaderOptions options = {.batch_size = 16,
                           .shuffle = true,
                           .seed = 42,
                           .transform = {.crop_padding = 2, .flip = true, .normalization = kHalf}};
  options.workers = 0;
  const Seen expected = read_all(Loader(Counting(333), options).epoch(7));
  ASSERT_EQ(expected.labels.size(), 333U);
  for (int workers : {1, 2, 4}) {
    for (int prefetch : {1, 3, 100}) {
      options.workers = workers;
      options.prefetch = prefetch;
      EXPECT_EQ(read_all(Loader(Counting(333), options).epoch(7)), expected)
          << workers << " workers, prefetch " << prefetch;
    }
  }
}

// An image's augmentation does not depend on where in the epoch it comes.
TEST(Loader, ResumesInMidEpoch) {
  const Loader loader(Counting(100), {.batch_size = 8,
                                      .shuffle = true,
                                      .seed = 3,
                                      .transform = {.crop_padding = 1, .flip = true},
                                      .workers = 2});
  const Seen whole = read_all(loader.epoch(2));
  const Seen rest = read_all(loader.epoch(2, 5));
  ASSERT_EQ(rest.images.size(), whole.images.size() - 5);
  EXPECT_TRUE(std::equal(rest.images.begin(), rest.images.end(), whole.images.begin() + 5));
  EXPECT_EQ(rest.indices.front(), 5);
  EXPECT_TRUE(read_all(loader.epoch(2, loader.batches())).images.empty());
}

// Every result is a shifted, maybe mirrored copy of the image on a ground of zeros, and all shifts
// and both directions come up.
TEST(Loader, CropAndFlip) {
  const int64_t padding = 2;
  const Loader loader(Counting(400),
                      {.batch_size = 400, .transform = {.crop_padding = padding, .flip = true}});
  const Counting dataset(400);
  Epoch epoch = loader.epoch(0);
  const Batch batch = epoch.next().value();
  std::set<std::tuple<int64_t, int64_t, bool>> seen;
  for (int64_t i = 0; i < 400; ++i) {
    const Sample sample = dataset.get(i);
    int matches = 0;
    for (int64_t dy = -padding; dy <= padding; ++dy)
      for (int64_t dx = -padding; dx <= padding; ++dx)
        for (bool mirrored : {false, true}) {
          bool same = true;
          for (int64_t y = 0; y < 4; ++y)
            for (int64_t x = 0; x < 5; ++x)
              for (int64_t c = 0; c < 3; ++c) {
                const int64_t sy = y + dy;
                const int64_t sx = (mirrored ? 4 - x : x) + dx;
                const bool inside = sy >= 0 && sy < 4 && sx >= 0 && sx < 5;
                const float want =
                    inside ? static_cast<float>(sample.image.pixels[(sy * 5 + sx) * 3 + c]) : 0.0F;
                same = same && batch.images(i, c, y, x) == want;
              }
          if (same) seen.emplace(dy, dx, mirrored);
          matches += same ? 1 : 0;
        }
    EXPECT_GE(matches, 1) << "sample " << i;
  }
  EXPECT_EQ(seen.size(), 50U);  // 5 x 5 shifts, 2 directions
}

TEST(Loader, PaddingBeyondTheImage) {
  const Loader loader(Counting(64),
                      {.batch_size = 64, .transform = {.crop_padding = 9, .flip = true}});
  EXPECT_EQ(read_all(loader.epoch(0)).images.front().size(), 64U * 60U);
}

// --- errors

TEST(Loader, AWorkersErrorNamesTheSample) {
  for (int workers : {0, 1, 2, 4}) {
    SCOPED_TRACE(workers);
    const int64_t before = threads_of_process();
    const Loader loader(Counting(100, {37}), {.batch_size = 10, .workers = workers});
    Epoch epoch = loader.epoch(4);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(epoch.next().value().index, i);
    for (int again = 0; again < 2; ++again) {
      expect_error<SampleError>([&] { (void)epoch.next(); },
                                {"[loader]", "sample 37", "epoch 4", "batch 3", "broken image"});
    }
    expect_threads(before);
    try {
      (void)epoch.next();
    } catch (const SampleError& e) {
      EXPECT_EQ(e.index(), 37);
      EXPECT_THROW(std::rethrow_if_nested(e), FormatError);
    }
    // The loader lives on: past the broken batch, or over all of it.
    EXPECT_EQ(read_all(loader.epoch(4, 4)).labels.size(), 60U);
    expect_error<SampleError>([&] { (void)read_all(loader.epoch(5)); }, {"sample 37"});
  }
}

TEST(Loader, EveryBatchBroken) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < 40; ++i) all.insert(i);
  const Loader loader(Counting(40, all), {.batch_size = 1, .workers = 4, .prefetch = 2});
  expect_error<SampleError>([&] { (void)read_all(loader.epoch(0)); }, {"sample 0 "});
}

class ThrowsInt : public Counting {
 public:
  ThrowsInt() : Counting(3) {}
  [[nodiscard]] Sample get(int64_t) const override { throw 5; }
};

TEST(Loader, ExceptionsOfAnyType) {
  const Loader loader{ThrowsInt(), {}};
  expect_error<SampleError>([&] { (void)loader.epoch(0).next(); }, {"sample 0", "unknown"});
}

TEST(Loader, ImagesOfTwoSizes) {
  const Loader loader(Counting(20, {}, 13), {.batch_size = 20});
  expect_error<SampleError>([&] { (void)loader.epoch(0).next(); },
                            {"sample 13", "(20, 3, 4, 5)", "(20, 3, 4, 6)"});
}

TEST(Loader, OptionsOutOfRange) {
  const auto expect = []<class E>(std::type_identity<E>, const LoaderOptions& options,
                                  const std::string& text, int64_t size = 10) {
    expect_error<E>([&] { (void)Loader(Counting(size), options); }, {"[loader]", text});
  };
  constexpr std::type_identity<TypeError> kType;
  constexpr std::type_identity<ShapeError> kShape;
  expect(kType, {.batch_size = 0}, "batch size");
  expect(kType, {.transform = {.crop_padding = -1}}, "crop padding");
  expect(kType, {.workers = -1}, "workers");
  expect(kType, {.prefetch = 0}, "prefetch");
  expect(kType, {.transform = {.normalization = {.stddev = {1, 0, 1, 1}}}}, "channel 1");
  expect(kShape, {}, "with samples, got 0", 0);
  expect(kShape, {.batch_size = 11, .drop_last = true}, "full batch of 11");
  expect_error<TypeError>([] { (void)Loader(std::shared_ptr<const Dataset>(), {}); }, {"none"});
  const Loader loader(Counting(10), {.batch_size = 5});
  expect_error<IndexError>([&] { (void)loader.epoch(-1); }, {"-1"});
  expect_error<IndexError>([&] { (void)loader.epoch(0, 3); }, {"[0, 2]", "got 3"});
  expect_error<IndexError>([&] { (void)loader.epoch(0, -1); }, {"got -1"});
}

// --- early ends

TEST(Loader, LeavingAnEpochJoinsItsThreads) {
  const int64_t before = threads_of_process();
  for (int workers : {1, 2, 4}) {
    for (int read : {0, 1, 3}) {
      const Loader loader(Counting(1000), {.batch_size = 10, .workers = workers, .prefetch = 2});
      Epoch epoch = loader.epoch(0);
      for (int i = 0; i < read; ++i) (void)epoch.next();
      epoch = loader.epoch(1);  // the first one ends here
      EXPECT_EQ(epoch.next().value().index, 0);
    }
    expect_threads(before);
  }
}

TEST(Loader, AnEpochOutlivesItsLoader) {
  auto loader = std::make_unique<Loader>(Counting(100), LoaderOptions{.batch_size = 10});
  Epoch epoch = loader->epoch(0);
  loader.reset();
  EXPECT_EQ(read_all(std::move(epoch)).labels.size(), 100U);
  expect_error<Error>([&] { (void)epoch.next(); }, {"moved"});  // NOLINT(bugprone-use-after-move)
}

class CountsCalls : public Counting {
 public:
  CountsCalls(int64_t size, std::atomic<int64_t>& calls) : Counting(size), calls_(calls) {}
  [[nodiscard]] Sample get(int64_t index) const override {
    ++calls_;
    return Counting::get(index);
  }

 private:
  std::atomic<int64_t>& calls_;
};

TEST(Loader, PrefetchIsBounded) {
  std::atomic<int64_t> calls = 0;
  const Loader loader(CountsCalls(1000, calls), {.batch_size = 10, .workers = 2, .prefetch = 3});
  Epoch epoch = loader.epoch(0);
  (void)epoch.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(calls, 10 * (1 + 3));
}

// --- datasets

TEST(ImageDataset, ChecksItsParts) {
  const auto images = zeros<uint8_t>({4, 2, 2, 3});
  const auto labels = from_data<int64_t>({0, 1, 1, 0});
  const ImageDataset set(images, labels, {"a", "b"}, {});
  EXPECT_EQ(set.size(), 4);
  EXPECT_EQ(set.first(3).size(), 3);
  EXPECT_EQ(set.first(3).images().data(), images.data());
  expect_error<IndexError>([&] { (void)set.get(4); }, {"[0, 4)", "got 4"});
  expect_error<IndexError>([&] { (void)set.get(-1); }, {"got -1"});
  expect_error<IndexError>([&] { (void)set.first(5); }, {"1 .. 4"});
  expect_error<IndexError>([&] { ImageDataset(images, labels, {"a"}, {}); }, {"got 1 for image 1"});
  expect_error<ShapeError>(
      [&] {
        ImageDataset(images, labels.narrow(0, 0, 3), {"a", "b"}, {});
      },
      {"(4)", "(3)"});
  expect_error<ShapeError>([&] { ImageDataset(images[0], labels, {"a", "b"}, {}); }, {"(2, 2, 3)"});
}

TEST(Normalization, MeasuredByHand) {
  const auto images = from_data<uint8_t>({0, 7, 10, 7, 20, 7, 30, 7}, {2, 2, 1, 2});
  const ImageDataset set(images, zeros<int64_t>({2}), {"a"}, {});
  const Normalization measured = measure_normalization(set);
  EXPECT_FLOAT_EQ(measured.mean[0], 15);
  EXPECT_FLOAT_EQ(measured.stddev[0], std::sqrt(125.0F));
  EXPECT_FLOAT_EQ(measured.mean[1], 7);
  EXPECT_FLOAT_EQ(measured.stddev[1], 1);
  expect_error<ShapeError>([] { (void)measure_normalization(Counting(0)); }, {"empty"});
}

TEST(ToBatch, OneImage) {
  const Image image = gradient_image(3, 2, 3);
  const Tensor<float> batch = to_batch(image.view(), kHalf);
  ASSERT_EQ(batch.shape(), (Shape{1, 3, 3, 2}));
  EXPECT_TRUE(batch.is_contiguous(MemoryFormat::channels_last));
  EXPECT_EQ(batch(0, 1, 2, 1), (static_cast<float>(image.pixels[(2 * 2 + 1) * 3 + 1]) - 20) / 4);
  expect_error<ShapeError>([] { (void)to_batch({}, kHalf); }, {"[to_batch]"});
}

}  // namespace
}  // namespace gable::data::test
