// SPDX-License-Identifier: Apache-2.0
// Fourier transforms on every device, against their definition in double.
#include "gable/ops/fft.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "errors.hpp"
#include "fft_reference.hpp"
#include "gable/autograd/apply.hpp"
#include "gable/autograd/gradcheck.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/view.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

using fft::Norm;
using Length = std::optional<int64_t>;
using testing_fft::dft;

class Fft : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  [[nodiscard]] Device device() const { return {GetParam(), 0}; }
  template <class T>
  [[nodiscard]] Tensor<T> draw(const Shape& shape) const {
    Generator generator(3);
    return rand<T>(shape, -1, 1, {}, generator).to(device());
  }
};

Shape with_parts(Shape shape) {
  shape.push_back(2);
  return shape;
}

template <class T>
void expect_close(const Tensor<T>& got, const Tensor<double>& want, const std::string& what) {
  ASSERT_EQ(concat(got.shape()), concat(want.shape())) << what;
  const std::vector<double> g = got.template to<double>().to_vector();
  const std::vector<double> w = want.to_vector();
  double squares = 0;
  for (const double v : w) squares += v * v;
  const double tolerance = (std::is_same_v<T, float> ? 2e-6 : 4e-15) *
                           (1 + std::sqrt(squares / static_cast<double>(w.size()))) * 4;
  for (size_t i = 0; i < w.size(); ++i)
    ASSERT_NEAR(g[i], w[i], tolerance) << what << ", element " << i;
}

// All four functions on x (real) and z (complex), against the definition.
template <class T>
void expect_transforms(const Tensor<T>& x, const Tensor<T>& z, Length n = {}, int64_t dim = -1,
                       Norm norm = Norm::backward) {
  const Tensor<double> real = x.to(kCpu).template to<double>().contiguous();
  const Tensor<double> complex = z.to(kCpu).template to<double>().contiguous();
  const std::string what = concat(" of ", x.layout(), " and ", z.layout(), " n ", n.value_or(-1),
                                  " dim ", dim, " norm ", static_cast<int>(norm));
  auto reference = [&](FftKind kind, bool inverse) {
    return dft(kind, inverse, kind == FftKind::real_to_complex ? real : complex, n, dim, norm);
  };
  expect_close(fft::rfft(x, n, dim, norm), reference(FftKind::real_to_complex, false),
               "rfft" + what);
  if (n || z.size(dim < 0 ? dim - 1 : dim) > 1)
    expect_close(fft::irfft(z, n, dim, norm), reference(FftKind::complex_to_real, true),
                 "irfft" + what);
  expect_close(fft::fft(z, n, dim, norm), reference(FftKind::complex, false), "fft" + what);
  expect_close(fft::ifft(z, n, dim, norm), reference(FftKind::complex, true), "ifft" + what);
  EXPECT_EQ(x.to(kCpu).template to<double>().to_vector(), real.to_vector()) << what;
  EXPECT_EQ(z.to(kCpu).template to<double>().to_vector(), complex.to_vector()) << what;
}

TEST_P(Fft, MatchesDefinitionForManyLengths) {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 64, 97, 1000, 1024}) {
    expect_transforms(draw<float>({3, n}), draw<float>({3, n, 2}), n);
    expect_transforms(draw<double>({3, n}), draw<double>({3, n, 2}), n);
    expect_transforms(draw<double>({n}), draw<double>({n, 2}));
  }
}

TEST_P(Fft, TransformsEveryDimension) {
  const Shape shape{3, 4, 5};
  for (const int64_t dim : {0, 1, 2, -1, -2, -3}) {
    expect_transforms(draw<float>(shape), draw<float>(with_parts(shape)), {}, dim);
    expect_transforms(draw<double>(shape), draw<double>(with_parts(shape)), {}, dim);
  }
  expect_transforms(draw<float>({48, 37}), draw<float>({48, 37, 2}), {}, 0);
}

TEST_P(Fft, TakesAnyStrides) {
  const auto x = draw<float>({6, 8});
  const auto z = draw<float>({6, 8, 2});
  for (const int64_t dim : {0, 1}) {
    expect_transforms(x.t(), z.transpose(0, 1), {}, dim);
    expect_transforms(x.slice(1, 1, {}, 2), z.slice(1, 1, {}, 2), {}, dim);
    expect_transforms(x.slice(0, {}, {}, -1), z.slice(1, {}, {}, -1), {}, dim);
    expect_transforms(x.select(0, 2).expand({5, 8}), z.select(0, 2).expand({5, 8, 2}), {}, dim);
  }
  // parts apart; an odd offset; a step that is no multiple of a complex value
  expect_transforms(x.narrow(1, 1, 7), draw<float>({2, 6, 8}).permute({1, 2, 0}));
  expect_transforms(draw<float>({49}).narrow(0, 1, 48),
                    draw<float>({21}).narrow(0, 1, 20).view({10, 2}));
  expect_transforms(draw<float>({2, 9}).narrow(1, 1, 8),
                    draw<float>({4, 11}).as_strided({4, 5, 2}, {11, 2, 1}));
  // overlapping frames
  expect_transforms(draw<float>({30}).unfold(0, 8, 3),
                    draw<float>({30, 2}).unfold(0, 8, 3).transpose(-1, -2));
}

TEST_P(Fft, ScalesAsTheNormSays) {
  for (const Norm norm : {Norm::backward, Norm::ortho, Norm::forward})
    for (const int64_t n : {6, 7})
      expect_transforms(draw<double>({2, n}), draw<double>({2, n, 2}), n, -1, norm);
}

TEST_P(Fft, CutsAndFills) {
  for (const int64_t n : {1, 2, 3, 6, 9, 12, 15})
    for (const int64_t dim : {0, 1, 2})
      expect_transforms(draw<double>({5, 6, 9}), draw<double>({5, 6, 9, 2}), n, dim, Norm::ortho);
  const auto nothing = draw<float>({2, 0});  // may be filled up
  EXPECT_EQ(fft::rfft(nothing, 4).to_vector(), std::vector<float>(12, 0));
}

TEST_P(Fft, InversesUndo) {
  for (const int64_t n : {1, 2, 9, 10, 16, 1000, 131072}) {
    const auto x = draw<double>({2, n});
    const auto z = draw<double>({2, n, 2});
    for (const Norm norm : {Norm::backward, Norm::ortho, Norm::forward}) {
      expect_close(fft::irfft(fft::rfft(x, {}, 1, norm), n, 1, norm), x.to(kCpu), "irfft");
      expect_close(fft::ifft(fft::fft(z, {}, 1, norm), {}, 1, norm), z.to(kCpu), "ifft");
    }
  }
}

TEST_P(Fft, GradientMatchesCentralDifferences) {
  for (const Norm norm : {Norm::backward, Norm::ortho, Norm::forward})
    for (const Length n :
         {Length(1), Length(2), Length(4), Length(5), Length(8), Length(9), Length()})
      for (const int64_t dim : {0, 1}) {
        const std::vector<Tensor<double>> x{draw<double>({5, 6})};
        const std::vector<Tensor<double>> z{draw<double>({5, 6, 2})};
        const std::string what = concat(" n ", n.value_or(-1), " dim ", dim);
        auto check_gradient = [&](const auto& f, const auto& in, const char* name) {
          const auto result = gradcheck([&](const auto& v) { return f(v[0]); }, in);
          EXPECT_TRUE(result.ok) << name << what << ": " << result.message;
        };
        check_gradient([&](const auto& v) { return fft::rfft(v, n, dim, norm); }, x, "rfft");
        check_gradient([&](const auto& v) { return fft::irfft(v, n, dim, norm); }, z, "irfft");
        check_gradient([&](const auto& v) { return fft::fft(v, n, dim, norm); }, z, "fft");
        check_gradient([&](const auto& v) { return fft::ifft(v, n, dim, norm); }, z, "ifft");
      }
}

TEST_P(Fft, BinsOfRealSignalsHaveNoImaginaryPartsWhereTheyPairWithThemselves) {
  for (const int64_t n : {1, 2, 5, 6, 8, 22}) {
    const int64_t bins = n / 2 + 1;
    const int64_t last = n % 2 == 0 ? bins - 1 : 0;
    const auto y = fft::rfft(draw<float>({n})).to(kCpu);
    EXPECT_EQ(y(0, 1), 0.0F) << n;
    EXPECT_EQ(y(last, 1), 0.0F) << n;
    // irfft does not read them, and gives them no gradient.
    const Variable<float> z(draw<float>({bins, 2}), true);
    const auto changed = z.value().clone();
    changed[0].narrow(0, 1, 1).fill_(7);
    changed[last].narrow(0, 1, 1).fill_(7);
    EXPECT_EQ(fft::irfft(changed, n).to_vector(), fft::irfft(z, n).value().to_vector()) << n;
    const Variable<float> x = fft::irfft(z, n);
    sum(x * x).backward();
    const auto gradient = z.grad().to(kCpu);
    EXPECT_EQ(gradient(0, 1), 0.0F) << n;
    EXPECT_EQ(gradient(last, 1), 0.0F) << n;
    EXPECT_NE(gradient(0, 0), 0.0F) << n;
  }
}

// Lengths whose factors no longer fit beside those that a CPU thread keeps.
TEST_P(Fft, DropsKeptFactors) {
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t n = 49152 + 4096 * (i % 3);
    const auto x = draw<double>({n});
    expect_close(fft::irfft(fft::rfft(x)), x.to(kCpu), concat("length ", n));
  }
}

// More lengths than a device keeps plans, from several threads.
TEST_P(Fft, IsSafeUnderThreads) {
  const auto x = draw<double>({4, 50});
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (std::string& error : errors)
    threads.emplace_back([&] {
      for (int round = 0; round < 2; ++round)
        for (int64_t n = 1; n <= 50; ++n) {
          const auto cut = x.narrow(1, 0, n);
          const auto back = fft::irfft(fft::rfft(cut), n) - cut;
          const double worst = max(abs(back)).item();
          if (!(worst < 1e-13)) error = concat("length ", n, ": ", worst);
        }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_P(Fft, EmptyBatchesGiveEmptyResults) {
  const auto x = zeros<float>({0, 4, 3}, {.device = device()});
  const auto z = zeros<float>({0, 4, 3, 2}, {.device = device()});
  EXPECT_EQ(fft::rfft(x, {}, 1).shape(), (Shape{0, 3, 3, 2}));
  EXPECT_EQ(fft::irfft(z, {}, 1).shape(), (Shape{0, 6, 3}));
  EXPECT_EQ(fft::fft(z, 7, 1).shape(), (Shape{0, 7, 3, 2}));
  const Variable<float> v(z, true);
  sum(fft::ifft(v, 2, 1)).backward();
  EXPECT_EQ(v.grad().shape(), z.shape());
}

TEST_P(Fft, RefusesBadInput) {
  const auto x = draw<float>({3, 4});
  const auto z = draw<float>({3, 4, 2});
  std::string text = error_of<ShapeError>([&] { (void)fft::fft(x); });
  EXPECT_HAS(text, "[fft] expected a complex tensor (..., 2)");
  EXPECT_HAS(text, "got (3, 4)");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)fft::irfft(x); }), "[irfft] expected a complex");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)fft::ifft(draw<float>({2})); }), "got (2)");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)fft::ifft(draw<float>({})); }), "got ()");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)fft::rfft(draw<float>({})); }), "[rfft] expected");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)fft::rfft(Tensor<float>()); }), "[rfft] expected");
  EXPECT_HAS(error_of<IndexError>([&] { (void)fft::rfft(x, {}, 2); }), "[rfft] expected");
  EXPECT_HAS(error_of<IndexError>([&] { (void)fft::fft(z, {}, 2); }), "[fft] expected");
  EXPECT_HAS(error_of<IndexError>([&] { (void)fft::irfft(z, {}, -3); }), "got -3");
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
    text = error_of<TypeError>([&] { (void)fft::rfft(x, n); });
    EXPECT_HAS(text, concat("[rfft] expected a length n from 1 to 2147483647, got ", n));
  }
  text = error_of<TypeError>([&] { (void)fft::irfft(z.narrow(1, 0, 1)); });
  EXPECT_HAS(text, "got 0 for dimension 1 of (3, 1, 2)");
  EXPECT_HAS(error_of<TypeError>([&] { (void)fft::fft(z.narrow(1, 0, 0)); }), "got 0");
}

static_assert(!fft::Transformable<Tensor<half>> && !fft::Transformable<Tensor<int32_t>>);

std::string device_name(const testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::cuda ? "Cuda" : "Cpu";
}
INSTANTIATE_TEST_SUITE_P(Devices, Fft, testing::Values(DeviceType::cpu, DeviceType::cuda),
                         device_name);

}  // namespace
}  // namespace gable
