// SPDX-License-Identifier: Apache-2.0
// The built-in data set: repeatable, balanced, and no prey for a linear classifier.
#include "gable/data/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "data_files.hpp"

namespace gable::data::test {
namespace {

Bytes pixels(const ImageDataset& set, int64_t index) {
  const ImageView view = set.get(index).image;
  return {view.pixels, view.pixels + view.size()};
}

TEST(SyntheticShapes, ShapeNamesAndBalance) {
  const TrainTest set = SyntheticShapes::make({.train = 200, .test = 50});
  EXPECT_EQ(set.train.images().shape(), (Shape{200, 32, 32, 3}));
  EXPECT_EQ(set.test.images().shape(), (Shape{50, 32, 32, 3}));
  EXPECT_EQ(set.train.classes(), SyntheticShapes::kClasses);
  EXPECT_EQ(
      std::set<std::string>(set.train.class_names().begin(), set.train.class_names().end()).size(),
      10U);
  for (int64_t i = 0; i < 200; ++i) EXPECT_EQ(set.train.get(i).label, i % 10);
  EXPECT_EQ(SyntheticOptions{}.train, 10'000);
}

TEST(SyntheticShapes, AnImageDependsOnSeedSplitAndIndexAlone) {
  const ImageDataset set = SyntheticShapes::make(Split::train, 130, 3);
  std::set<Bytes> different;
  for (int64_t i = 0; i < set.size(); ++i) {
    EXPECT_EQ(pixels(set, i), SyntheticShapes::render(Split::train, i, 3).pixels) << i;
    different.insert(pixels(set, i));
  }
  EXPECT_EQ(different.size(), 130U);
  EXPECT_NE(SyntheticShapes::render(Split::train, 5, 3).pixels,
            SyntheticShapes::render(Split::test, 5, 3).pixels);
  EXPECT_NE(SyntheticShapes::render(Split::train, 5, 3).pixels,
            SyntheticShapes::render(Split::train, 5, 4).pixels);
}

TEST(SyntheticShapes, Normalization) {
  const ImageDataset set = SyntheticShapes::make(Split::train, 4000, 1);
  const Normalization measured = measure_normalization(set);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(measured.mean[c], set.normalization().mean[c], 4);
    EXPECT_NEAR(measured.stddev[c], set.normalization().stddev[c], 2);
  }
}

TEST(SyntheticShapes, Errors) {
  expect_error<ShapeError>([] { (void)SyntheticShapes::make(Split::test, 0); }, {"got 0"});
  expect_error<IndexError>([] { (void)SyntheticShapes::render(Split::test, -1); }, {"got -1"});
}

// Softmax regression on raw pixels by stochastic gradient descent, in plain loops.
class LinearClassifier {
 public:
  static constexpr size_t kInputs = 32 * 32 * 3;

  void train(const ImageDataset& set, int epochs, float rate) {
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const float decayed = rate / static_cast<float>(1 + epoch);
      for (int64_t i = 0; i < set.size(); ++i) {
        // 7919 is prime and does not divide the size: another order than by class.
        const Sample sample = set.get(i * 7919 % set.size());
        const Input x = input(sample.image);
        std::array<float, 10> p = scores(x);
        const float top = *std::max_element(p.begin(), p.end());
        float sum = 0;
        for (float& v : p) sum += v = std::exp(v - top);
        for (size_t k = 0; k < 10; ++k) {
          const float slope = p[k] / sum - (static_cast<int64_t>(k) == sample.label ? 1.0F : 0.0F);
          float* weights = weights_[k].data();
          for (size_t j = 0; j <= kInputs; ++j) weights[j] -= decayed * slope * x[j];
        }
      }
    }
  }

  [[nodiscard]] double accuracy(const ImageDataset& set) const {
    int64_t right = 0;
    for (int64_t i = 0; i < set.size(); ++i) {
      const Sample sample = set.get(i);
      const std::array<float, 10> s = scores(input(sample.image));
      right += std::max_element(s.begin(), s.end()) - s.begin() == sample.label ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(set.size());
  }

 private:
  using Input = std::array<float, kInputs + 1>;  // the last one is 1, for the bias
  static Input input(const ImageView& image) {
    Input x{};
    for (size_t j = 0; j < kInputs; ++j) x[j] = (static_cast<float>(image.pixels[j]) - 127.5F) / 72;
    x[kInputs] = 1;
    return x;
  }
  [[nodiscard]] std::array<float, 10> scores(const Input& x) const {
    std::array<float, 10> s{};
    for (size_t k = 0; k < 10; ++k)
      for (size_t j = 0; j <= kInputs; ++j) s[k] += weights_[k][j] * x[j];
    return s;
  }
  std::array<Input, 10> weights_{};
};

TEST(SyntheticShapes, ALinearClassifierStaysBelow60Percent) {
  const TrainTest set = SyntheticShapes::make({.train = 5'000, .test = 1'000});
  const auto classifier = std::make_unique<LinearClassifier>();
  classifier->train(set.train, 3, 1e-4F);
  const double train = classifier->accuracy(set.train);
  const double test = classifier->accuracy(set.test);
  RecordProperty("train_accuracy", std::to_string(train));
  RecordProperty("test_accuracy", std::to_string(test));
  EXPECT_GT(train, 0.2) << "the classifier did not learn at all";
  EXPECT_LT(test, 0.6) << "train accuracy " << train;
}

}  // namespace
}  // namespace gable::data::test
