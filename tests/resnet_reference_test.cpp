// SPDX-License-Identifier: Apache-2.0
// ResNet-18 against PyTorch: losses, every gradient, weights and running statistics after three
// steps of SGD, from reference/resnet18.f32, which reference/make_resnet18.py made.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gable/memory/cuda.hpp"
#include "gable/models/resnet.hpp"
#include "gable/ops/loss.hpp"
#include "gable/optim/sgd.hpp"

namespace gable {
namespace {

constexpr int64_t kBatch = 8;
constexpr size_t kSteps = 3;
constexpr size_t kProjections = 32;
constexpr double kTolerance = 1e-3;

// Chris Wellons' lowbias32, as in the script.
uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

// Element i of a stream, in [-1, 1).
double uniform(uint32_t stream, int64_t i) {
  return (hash32(static_cast<uint32_t>(i) + stream * 0x9e3779b9U) >> 8) * 0x1p-23 - 1;
}

void set_weights(const nn::AnyModule& model) {
  uint32_t stream = 0;
  for (const auto& [name, p] : model.named_parameters()) {
    ++stream;
    const Shape& shape = p.shape();
    double scale = 0.2;
    double shift = 0;
    if (shape.size() == 4)
      scale = std::sqrt(6.0 / static_cast<double>(shape[0] * shape[2] * shape[3]));
    else if (shape.size() == 2)
      scale = 1 / std::sqrt(static_cast<double>(shape[1]));
    else if (name.ends_with("weight"))
      shift = 1;
    const Tensor<float> values(shape);
    for (int64_t i = 0; i < values.numel(); ++i)
      values.data()[i] = static_cast<float>(shift + scale * uniform(stream, i));
    p.master().copy_(values);
    p.refresh();
  }
}

struct Batch {
  Variable<float> images;
  Tensor<int64_t> labels;
};
Batch make_batch(int64_t size, Device device) {
  const Tensor<float> images({kBatch, 3, size, size});
  for (int64_t i = 0; i < images.numel(); ++i)
    images.data()[i] = static_cast<float>(uniform(1000, i) * std::sqrt(3.0));
  const Tensor<int64_t> labels({kBatch});
  for (int64_t i = 0; i < kBatch; ++i) labels(i) = hash32(static_cast<uint32_t>(i) + 77) % 10;
  return {Variable<float>(images.contiguous(MemoryFormat::channels_last).to(device)),
          labels.to(device)};
}

struct Named {
  std::string name;
  std::vector<double> values;
};
struct Trained {
  std::vector<double> losses;
  std::vector<Named> tensors;  // gradients, parameters, running statistics
};

std::vector<double> values(const AnyTensor& t) {
  return t.to(DType::float64).as<double>().to_vector();
}

Trained train(int64_t width, int64_t size, Device device) {
  models::ResNet18<float> model({10, width, models::Stem::cifar});
  set_weights(model);
  model.to(device);
  const Batch batch = make_batch(size, device);
  optim::SGD sgd(model.parameters(),
                 {.lr = 0.005, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  Trained run;
  for (size_t step = 0; step < kSteps; ++step) {
    model.zero_grad();
    const Variable<float> loss = cross_entropy(model(batch.images), batch.labels);
    loss.backward();
    run.losses.push_back(static_cast<double>(loss.item()));
    if (step == 0)
      for (const auto& [name, p] : model.named_parameters())
        run.tensors.push_back({"gradient of " + name, values(p.gradient())});
    sgd.step();
  }
  for (const auto& [name, p] : model.named_parameters())
    run.tensors.push_back({name, values(p.master())});
  for (const auto& [name, t] : model.named_buffers())
    if (t.shape().size() == 1) run.tensors.push_back({name, values(t)});
  return run;
}

// The reference file, read from front to back.
class Reference {
 public:
  Reference() {
    const char* given = std::getenv("GABLE_TEST_DIR");  // where the build's folder is elsewhere
    const std::string folder = given != nullptr ? given : GABLE_TEST_DIR;
    std::ifstream file(folder + "/reference/resnet18.f32", std::ios::binary);
    float value = 0;
    while (file.read(reinterpret_cast<char*>(&value), sizeof value))
      values_.push_back(static_cast<double>(value));
  }
  [[nodiscard]] std::vector<double> next(size_t count) {
    EXPECT_LE(at_ + count, values_.size()) << "reference/resnet18.f32 is missing or short";
    if (at_ + count > values_.size()) return std::vector<double>(count, NAN);
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  [[nodiscard]] bool at_end() const { return at_ == values_.size(); }

 private:
  std::vector<double> values_;
  size_t at_ = 0;
};

double norm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double sum = 0;
  for (size_t i = 0; i < got.size(); ++i) sum += (got[i] - want[i]) * (got[i] - want[i]);
  return std::sqrt(sum) / norm(want);
}

// Norm, then projections on vectors of +-1.
std::vector<double> summary(const std::vector<double>& v) {
  std::vector<double> out(1 + kProjections);
  out[0] = norm(v);
  for (size_t i = 0; i < v.size(); ++i) {
    const uint32_t bits = hash32(static_cast<uint32_t>(i));
    for (size_t j = 0; j < kProjections; ++j) out[j + 1] += ((bits >> j) & 1U) != 0 ? -v[i] : v[i];
  }
  return out;
}

// The expected square of a random projection of the error is the error's squared norm.
double projected_error(const std::vector<double>& got, const std::vector<double>& want) {
  double sum = 0;
  for (size_t j = 1; j < got.size(); ++j) sum += (got[j] - want[j]) * (got[j] - want[j]);
  return std::sqrt(sum / kProjections) / want[0];
}

void compare_losses(const Trained& run, const std::vector<double>& want) {
  for (size_t i = 0; i < kSteps; ++i)
    EXPECT_NEAR(run.losses[i], want[i], kTolerance * want[i]) << "loss of step " << i;
}

// Prints the worst error of gradients and of the rest, too.
class Worst {
 public:
  void add(const std::string& name, double error) {
    EXPECT_LE(error, kTolerance) << name;
    double& worst = name.starts_with("gradient") ? gradient_ : other_;
    worst = std::max(worst, error);
  }
  void print(int64_t width) const {
    std::printf("width %d: relative error of gradients <= %.1e, of weights and statistics %.1e\n",
                static_cast<int>(width), gradient_, other_);
  }

 private:
  double gradient_ = 0;
  double other_ = 0;
};

void expect_agreement(Device device) {
  Reference reference;
  {
    const Trained run = train(4, 32, device);
    compare_losses(run, reference.next(kSteps));
    Worst worst;
    for (const Named& t : run.tensors)
      worst.add(t.name, relative_error(t.values, reference.next(t.values.size())));
    worst.print(4);
  }
  const Trained run = train(64, 16, device);
  compare_losses(run, reference.next(kSteps));
  Worst worst;
  for (const Named& t : run.tensors)
    worst.add(t.name, projected_error(summary(t.values), reference.next(1 + kProjections)));
  worst.print(64);
  EXPECT_TRUE(reference.at_end());
}

TEST(ResNetReference, AgreesWithPyTorch) { expect_agreement(kCpu); }

TEST(ResNetReference, CudaAgreesWithPyTorch) {
  if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  expect_agreement({DeviceType::cuda, 0});
}

}  // namespace
}  // namespace gable
