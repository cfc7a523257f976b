// SPDX-License-Identifier: Apache-2.0
// Convolution engines on CUDA: which one runs, and values of layers large enough for each. CTest
// runs it once with every engine forced.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "gable/memory/cuda.hpp"
#include "gable/ops/conv.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

const Device kGpu{DeviceType::cuda, 0};

std::string forced() {
  const char* name = std::getenv("GABLE_CONV_ENGINE");
  return name == nullptr ? "" : name;
}

#ifdef GABLE_TEST_CUDNN
constexpr bool kHasCudnn = true;
#else
constexpr bool kHasCudnn = false;
#endif

class CudaConv : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
};

template <class T>
void expect_close(const Tensor<T>& got, const Tensor<double>& want, double relative,
                  const std::string& what) {
  const std::vector<double> g = got.to(kCpu).template to<double>().to_vector();
  const std::vector<double> w = want.to_vector();
  ASSERT_EQ(g.size(), w.size()) << what;
  double largest = 0;
  for (const double v : w) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < w.size(); ++i)
    ASSERT_LE(std::abs(g[i] - w[i]), relative * largest)
        << what << ": element " << i << ", got " << g[i] << ", want " << w[i];
}

struct Layer {
  Shape x;
  Shape weight;
  ConvOptions options;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {
      {{4, 32, 16, 16}, {48, 32, 3, 3}, {.padding = 1}},
      {{4, 32, 17, 15}, {64, 32, 3, 3}, {.stride = 2, .padding = 1}},
      {{8, 64, 16, 16}, {96, 64, 1, 1}, {}},
      {{8, 64, 16, 16}, {128, 64, 1, 1}, {.stride = 2}},
      {{8, 3, 32, 32}, {64, 3, 3, 3}, {.padding = 1}},
      {{4, 30, 16, 16}, {42, 30, 3, 3}, {.padding = 1}},
      {{4, 64, 20, 20}, {64, 16, 3, 3}, {.padding = 1, .groups = 4}},
      {{4, 32, 20, 20}, {48, 32, 3, 3}, {.padding = 2, .dilation = 2}},
      {{2, 32, 19, 23}, {48, 32, 5, 3}, {.stride = {2, 1}, .padding = {1, 2, 0, 3}}},
      {{8, 64, 32, 32}, {64, 1, 3, 3}, {.padding = 1, .groups = 64}},
  };
  return all;
}

template <class T>
void check_layer(const Layer& layer, double relative, const std::string& what) {
  // An engine may round the product before it adds the bias.
  const double with_bias = SmallFloat<T> ? 2 * relative : relative;
  manual_seed(7);
  const auto channels_last = [](const auto& t) {
    return t.contiguous(MemoryFormat::channels_last);
  };
  const auto x = channels_last(randn<T>(layer.x));
  const auto w = channels_last(randn<T>(layer.weight));
  const auto bias = randn<T>({layer.weight[0]});
  const auto input_bias = randn<T>({layer.x[1]});
  const ConvGeometry g = detail::plan_conv(layer.x, layer.weight, nullptr, layer.options, "test");
  const auto dy = channels_last(randn<T>({g.images, g.out_channels, g.out.h, g.out.w}));
  const auto wide = [&](const auto& t) { return channels_last(t.template to<double>()); };
  const Tensor<double> none;
  const Tensor<T> no_bias;
  const auto gpu = [](const auto& t) { return t.to(kGpu); };
  expect_close(detail::run_conv(g, gpu(x), gpu(w), no_bias),
               detail::run_conv(g, wide(x), wide(w), none), relative, what + " forward");
  expect_close(detail::run_conv(g, gpu(x), gpu(w), gpu(bias)),
               detail::run_conv(g, wide(x), wide(w), bias.template to<double>()), with_bias,
               what + " forward with bias");
  expect_close(detail::run_conv_input_grad(g, gpu(dy), gpu(w), no_bias),
               detail::run_conv_input_grad(g, wide(dy), wide(w), none), relative,
               what + " input gradient");
  expect_close(detail::run_conv_input_grad(g, gpu(dy), gpu(w), gpu(input_bias)),
               detail::run_conv_input_grad(g, wide(dy), wide(w), input_bias.template to<double>()),
               with_bias, what + " input gradient with bias");
  expect_close(detail::run_conv_weight_grad(g, gpu(x), gpu(dy)),
               detail::run_conv_weight_grad(g, wide(x), wide(dy)), relative,
               what + " weight gradient");
}

TEST_F(CudaConv, LayersMatchTheCpuInDouble) {
  for (size_t i = 0; i < layers().size(); ++i) {
    const std::string what = concat("layer ", static_cast<int64_t>(i));
    check_layer<float>(layers()[i], 1e-5, what + " float");
    check_layer<double>(layers()[i], 1e-14, what + " double");
    check_layer<half>(layers()[i], 1e-3, what + " half");
    check_layer<bfloat16>(layers()[i], 5e-3, what + " bfloat16");
  }
}

TEST_F(CudaConv, RepeatsBitForBit) {
  manual_seed(3);
  const auto x = randn<bfloat16>({16, 64, 16, 16}).to(kGpu);
  const auto w = randn<bfloat16>({64, 64, 3, 3}).to(kGpu);
  const auto image = x.contiguous(MemoryFormat::channels_last);
  const ConvGeometry g = detail::plan_conv(x.shape(), w.shape(), nullptr, {.padding = 1}, "test");
  const auto first = detail::run_conv_weight_grad(g, image, image).to(kCpu).to_vector();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(detail::run_conv_weight_grad(g, image, image).to(kCpu).to_vector(), first);
}

// The layers of ResNet-18 on CIFAR-10 at batch 128. The first layer and the 1x1 ones are bound by
// memory: either engine may win.
template <class T>
void expect_engines(const std::string& three_by_three) {
  struct Row {
    int64_t in;
    int64_t out;
    int64_t size;
    int64_t kernel;
    int64_t stride;
  };
  for (const Row r : {Row{3, 64, 32, 3, 1}, Row{64, 64, 32, 3, 1}, Row{64, 128, 32, 3, 2},
                      Row{64, 128, 32, 1, 2}, Row{128, 128, 16, 3, 1}, Row{128, 256, 16, 3, 2},
                      Row{128, 256, 16, 1, 2}, Row{256, 256, 8, 3, 1}, Row{256, 512, 8, 3, 2},
                      Row{256, 512, 8, 1, 2}, Row{512, 512, 4, 3, 1}}) {
    const std::string what = concat("layer ", r.in, " to ", r.out, ", kernel ", r.kernel,
                                    ", stride ", r.stride, ", image ", r.size);
    const ConvGeometry g =
        detail::plan_conv({128, r.in, r.size, r.size}, {r.out, r.in, r.kernel, r.kernel}, nullptr,
                          {.stride = r.stride, .padding = r.kernel / 2}, "test");
    const auto image = [](const Shape& shape) {
      return detail::image<T>(shape, kGpu).fill_(T(1.0F));
    };
    const auto x = image({128, r.in, r.size, r.size});
    const auto dy = image({128, r.out, g.out.h, g.out.w});
    const auto w = image({r.out, r.in, r.kernel, r.kernel});
    const auto expect = [&](const char* kernel) {
      const std::string engine = cuda::last_conv_engine();
      if (r.kernel == 3 && r.in > 3 && !three_by_three.empty())
        EXPECT_EQ(engine, three_by_three) << what << ", " << kernel;
      else
        EXPECT_TRUE(engine == "cudnn" || engine == "im2col") << what << ", " << kernel << engine;
      testing::Test::RecordProperty(concat(what, ", ", kernel), engine);
    };
    detail::run_conv(g, x, w, Tensor<T>());
    expect("forward");
    detail::run_conv_input_grad(g, dy, w, Tensor<T>());
    expect("input gradient");
    detail::run_conv_weight_grad(g, x, dy);
    expect("weight gradient");
  }
}

TEST_F(CudaConv, ResNetLayersTakeTheirEngines) {
  const std::string fastest = kHasCudnn ? "cudnn" : "im2col";
  const std::string wanted =
      forced().empty() || (forced() == "cudnn" && !kHasCudnn) ? fastest : forced();
  expect_engines<bfloat16>(wanted);
  expect_engines<half>(wanted);
  // Strict float32 has few engines in cuDNN: either may be the faster one.
  expect_engines<float>(forced().empty() && kHasCudnn ? "" : wanted);
  expect_engines<double>("im2col");
}

TEST_F(CudaConv, DepthwiseAndSmallLayers) {
  if (!forced().empty()) GTEST_SKIP() << "an engine is forced";
  const auto x = zeros<float>({2, 8, 6, 6}, {.device = kGpu});
  conv2d(x, zeros<float>({8, 1, 3, 3}, {.device = kGpu}), {.padding = 1, .groups = 8});
  EXPECT_EQ(cuda::last_conv_engine(), "direct");
  conv2d(x, zeros<float>({4, 8, 3, 3}, {.device = kGpu}), {.padding = 1});
  EXPECT_EQ(cuda::last_conv_engine(), "im2col");
}

TEST_F(CudaConv, Tf32IsOptIn) {
  manual_seed(5);
  const auto a = randn<float>({256, 512});
  const auto b = randn<float>({512, 256});
  const auto want = matmul(a.to<double>(), b.to<double>());
  EXPECT_FALSE(cuda::allow_tf32());
  expect_close(matmul(a.to(kGpu), b.to(kGpu)), want, 5e-6, "strict");
  cuda::set_allow_tf32(true);
  const auto loose = matmul(a.to(kGpu), b.to(kGpu));
  cuda::set_allow_tf32(false);
  expect_close(loose, want, 2e-3, "TF32");
  expect_close(matmul(a.to(kGpu), b.to(kGpu)), want, 5e-6, "strict again");
}

}  // namespace
}  // namespace gable
