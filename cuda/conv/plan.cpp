// SPDX-License-Identifier: Apache-2.0
// The choice of an engine.
#include "conv/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "conv/delay.hpp"
#include "gable/memory/cuda.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

namespace {

// Below this a convolution is bound by launches, and preparing a plan never pays.
constexpr int64_t kSmallFlops = int64_t{1} << 24;
// Another engine than the preferred one must be this much faster: the choice is not to flicker
// between runs over noise.
constexpr float kClearlyFaster = 0.75F;

// Work is timed behind a wait of so many microseconds, so that it never waits for the host.
constexpr unsigned kQueueTime = 100;

thread_local const char* last_engine = "";

template <class Args>
using Engines = std::vector<const ConvEngine<Args>*>;

template <class Args>
bool is_depthwise_call(const Args& args, const Stream&) {
  const ConvGeometry& g = args.g;
  const int64_t pixels = g.images * std::max(g.in.h * g.in.w, g.out.h * g.out.w);
  return is_depthwise(g) && pixels * g.groups < (int64_t{1} << 31);  // its kernels' index
}
template <class Args>
bool always(const Args&, const Stream&) {
  return true;
}

// In order of preference.
template <class Args>
const std::array<ConvEngine<Args>, 3>& all_engines() {
  static const std::array<ConvEngine<Args>, 3> all{{
      {"direct", is_depthwise_call<Args>, depthwise_conv},
      {"cudnn", cudnn_supports<Args>, cudnn_conv<Args>},
      {"im2col", always<Args>, im2col_conv},
  }};
  return all;
}

template <class Args>
const ConvEngine<Args>& choose(const Args& args, const Stream& stream) {
  const auto& all = all_engines<Args>();
  const std::string& forced = forced_conv_engine();
  for (const ConvEngine<Args>& engine : all)
    if (engine.name == forced && engine.supports(args, stream)) return engine;
  if (all.front().supports(args, stream)) return all.front();
  if (args.g.flops() < kSmallFlops) return all.back();
  Engines<Args> able;
  for (const ConvEngine<Args>& engine : all)
    if (engine.supports(args, stream)) able.push_back(&engine);
  if (able.size() == 1 || !may_measure() || is_capturing(stream)) return *able.front();
  const ConvEngine<Args>* best = able.front();
  float least = measure(stream, [&] { best->run(args, stream); }) * kClearlyFaster;
  for (size_t i = 1; i < able.size(); ++i) {
    try {
      const float time = measure(stream, [&] { able[i]->run(args, stream); });
      if (time >= least) continue;
      least = time;
      best = able[i];
    } catch (const Error&) {  // no memory for it
    }
  }
  return *best;
}

void add_geometry(ConvKey& key, const ConvGeometry& g, Device device) {
  for (int64_t v : {g.images, g.in_channels, g.out_channels, g.in.h, g.in.w, g.out.h, g.out.w,
                    g.kernel.h, g.kernel.w, g.stride.h, g.stride.w, g.dilation.h, g.dilation.w,
                    g.pad_top, g.pad_left, g.groups})
    key.add(v);
  key.add(device.index);
  key.add(allow_tf32() ? 1 : 0);
}

}  // namespace

template <class T>
ConvKey conv_key(const Conv2dArgs<T>& args, Device device) {
  ConvKey key;
  add_geometry(key, args.g, device);
  key.add(Image<const T>(args.x));
  key.add(ConvKey::alignment(args.w.data));
  key.add(ConvKey::alignment(args.y.data));
  key.add(args.bias.data == nullptr ? 0 : 1);
  return key;
}

template <class T>
ConvKey conv_key(const Conv2dInputGradArgs<T>& args, Device device) {
  ConvKey key;
  add_geometry(key, args.g, device);
  key.add(Image<const T>(args.dy));
  key.add(ConvKey::alignment(args.w.data));
  key.add(ConvKey::alignment(args.dx.data));
  key.add(args.bias.data == nullptr ? 0 : 1);
  return key;
}

template <class T>
ConvKey conv_key(const Conv2dWeightGradArgs<T>& args, Device device) {
  ConvKey key;
  add_geometry(key, args.g, device);
  key.add(Image<const T>(args.x));
  key.add(Image<const T>(args.dy));
  key.add(ConvKey::alignment(args.dw.data));
  return key;
}

const std::string& forced_conv_engine() {
  static const std::string name = [] {
    const char* text = std::getenv("GABLE_CONV_ENGINE");
    std::string value = text == nullptr ? "" : text;
    check<Error>(value.empty() || value == "im2col" || value == "cudnn" || value == "direct",
                 "conv2d", "expected GABLE_CONV_ENGINE to be im2col, cudnn or direct, got ", value);
    return value;
  }();
  return name;
}

bool may_measure() {
  static const bool may = [] {
    const char* text = std::getenv("GABLE_CONV_MEASURE");
    const std::string value = text == nullptr ? "" : text;
    check<Error>(value.empty() || value == "0" || value == "1", "conv2d",
                 "expected GABLE_CONV_MEASURE to be 0 or 1, got ", value);
    return value != "0";
  }();
  return may;
}

bool is_capturing(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  GABLE_CUDA_CHECK(cudaStreamIsCapturing(native(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

float measure(const Stream& stream, const std::function<void()>& work) {
  struct Event {
    cudaEvent_t event = nullptr;
    Event() { GABLE_CUDA_CHECK(cudaEventCreate(&event)); }
    ~Event() { ignore_result(cudaEventDestroy(event)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
  };
  const Event start;
  const Event stop;
  float best = 0;
  for (int i = 0; i < 4; ++i) {
    delay(stream, kQueueTime);
    GABLE_CUDA_CHECK(cudaEventRecord(start.event, native(stream)));
    work();
    GABLE_CUDA_CHECK(cudaEventRecord(stop.event, native(stream)));
    GABLE_CUDA_CHECK(cudaEventSynchronize(stop.event));
    float time = 0;
    GABLE_CUDA_CHECK(cudaEventElapsedTime(&time, start.event, stop.event));
    if (i == 1 || (i > 1 && time < best)) best = time;
  }
  return best;
}

std::string last_conv_engine() { return last_engine; }

template <class Args>
void run_conv(const Args& args, const Stream& stream) {
  static auto* choices = new std::map<ConvKey, const ConvEngine<Args>*>;
  static std::mutex mutex;
  const ConvKey key = conv_key(args, stream.device);
  const ConvEngine<Args>* engine = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (const auto it = choices->find(key); it != choices->end()) engine = it->second;
  }
  if (engine == nullptr) {
    engine = &choose(args, stream);
    if (!is_capturing(stream)) {
      const std::lock_guard lock(mutex);
      engine = choices->emplace(key, engine).first->second;
    }
  }
  last_engine = engine->name;
  engine->run(args, stream);
}

#define GABLE_RUN_CONV(...) template void run_conv<__VA_ARGS__>(const __VA_ARGS__&, const Stream&);
GABLE_CONV_ARGS(GABLE_RUN_CONV)
// cudnn.cpp keeps its plans by the same keys.
#define GABLE_CONV_KEY(...) template ConvKey conv_key(const __VA_ARGS__&, Device);
GABLE_CONV_ARGS(GABLE_CONV_KEY)

}  // namespace gable::cuda
