// SPDX-License-Identifier: Apache-2.0
// Engines of the convolution kernels and the choice between them.
#pragma once

#include <functional>
#include <string>

#include "conv/image.hpp"

namespace gable::cuda {

/// One way to run a kernel of the convolution family; Args is its argument struct.
template <class Args>
struct ConvEngine {
  const char* name;
  /// May prepare a plan for the geometry and keep it.
  bool (*supports)(const Args& args, const Stream& stream);
  void (*run)(const Args& args, const Stream& stream);
};

/// Runs args on the engine chosen for its geometry. Choices are made once and kept: the first of
/// direct, cudnn, im2col that supports the geometry, unless a later one is much faster in a short
/// measurement; no measurement while a graph is captured. GABLE_CONV_ENGINE overrules.
template <class Args>
void run_conv(const Args& args, const Stream& stream);

// --- im2col.cpp: columns and a product of cuBLASLt; takes everything

template <class T>
void im2col_conv(const Conv2dArgs<T>& args, const Stream& stream);
template <class T>
void im2col_conv(const Conv2dInputGradArgs<T>& args, const Stream& stream);
template <class T>
void im2col_conv(const Conv2dWeightGradArgs<T>& args, const Stream& stream);

// --- depthwise.cu: loops over channels

template <class T>
void depthwise_conv(const Conv2dArgs<T>& args, const Stream& stream);
template <class T>
void depthwise_conv(const Conv2dInputGradArgs<T>& args, const Stream& stream);
template <class T>
void depthwise_conv(const Conv2dWeightGradArgs<T>& args, const Stream& stream);

// --- cudnn.cpp: plans of cuDNN's graph library, in builds with it

template <class Args>
bool cudnn_supports(const Args& args, const Stream& stream);
template <class Args>
void cudnn_conv(const Args& args, const Stream& stream);

// --- plan.cpp

/// GABLE_CONV_ENGINE, or empty. Throws Error for a name that is no engine's.
[[nodiscard]] const std::string& forced_conv_engine();
/// False with GABLE_CONV_MEASURE=0: the same choices in every run, by preference and estimate.
[[nodiscard]] bool may_measure();
/// True while a CUDA graph is captured: no measuring, no waiting.
[[nodiscard]] bool is_capturing(const Stream& stream);
/// Milliseconds of the work that `work` queues: the best of a few runs after one to warm up.
[[nodiscard]] float measure(const Stream& stream, const std::function<void()>& work);

}  // namespace gable::cuda

/// M(Args) for the argument structs of all convolution kernels.
#define GABLE_CONV_ARGS(M)                       \
  M(gable::Conv2dArgs<float>)                    \
  M(gable::Conv2dArgs<double>)                   \
  M(gable::Conv2dArgs<gable::half>)              \
  M(gable::Conv2dArgs<gable::bfloat16>)          \
  M(gable::Conv2dInputGradArgs<float>)           \
  M(gable::Conv2dInputGradArgs<double>)          \
  M(gable::Conv2dInputGradArgs<gable::half>)     \
  M(gable::Conv2dInputGradArgs<gable::bfloat16>) \
  M(gable::Conv2dWeightGradArgs<float>)          \
  M(gable::Conv2dWeightGradArgs<double>)         \
  M(gable::Conv2dWeightGradArgs<gable::half>)    \
  M(gable::Conv2dWeightGradArgs<gable::bfloat16>)
