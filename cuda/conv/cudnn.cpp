// SPDX-License-Identifier: Apache-2.0
// Convolution by cuDNN: the graph library's best few engines of a geometry are timed once, and the
// fastest is kept. Only reproducible engines that accumulate in float, and for float32 only those
// that do not round their inputs unless TF32 is allowed.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>

#include "conv/cudnn_graph.hpp"
#include "conv/plan.hpp"
#include "gable/memory/cuda.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

void check_dnn(cudnnStatus_t status, const char* expression, std::source_location where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  ignore_result(cudaGetLastError());
  throw CudaError(current_op(),
                  concat("expected success of ", expression, ", got ", cudnnGetErrorString(status)),
                  where);
}

DnnHandle::DnnHandle(const Stream& stream) {
  struct Slot {
    std::mutex mutex;
    cudnnHandle_t handle = nullptr;
  };
  static auto* slots = new std::array<Slot, 64>;  // never destroyed, as contexts
  Slot& slot = (*slots)[static_cast<size_t>(context(stream.device).index)];
  lock_ = std::unique_lock(slot.mutex);
  if (slot.handle == nullptr) GABLE_DNN_CHECK(cudnnCreate(&slot.handle));
  raw_ = slot.handle;
  GABLE_DNN_CHECK(cudnnSetStream(raw_, native(stream)));
}

namespace {

constexpr int64_t kWorkspaceLimit = int64_t{512} << 20;
constexpr size_t kCandidates = 12;  // engines that are built and timed for a geometry

// Required before 9.19, whose headers warn of the names.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);

// Tensors of every convolution, by their part in the forward pass.
constexpr int64_t kX = 1;
constexpr int64_t kW = 2;
constexpr int64_t kY = 3;

template <class T>
constexpr cudnnDataType_t data_type() {
  if constexpr (std::is_same_v<T, half>) return CUDNN_DATA_HALF;
  if constexpr (std::is_same_v<T, bfloat16>) return CUDNN_DATA_BFLOAT16;
  return CUDNN_DATA_FLOAT;
}

struct Dnn4d {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t alignment = 16;
};

template <class T>
Dnn4d tensor_of(const Image<const T>& x) {
  return {data_type<T>(),
          {x.images, x.channels, x.h, x.w},
          {x.image_step, 1, x.row_step, x.pixel_step},
          ConvKey::alignment(x.data)};
}
template <class T>
Dnn4d tensor_of(const TensorView<T>& x) {
  return tensor_of(Image<const std::remove_const_t<T>>(x));
}

// The problem of one kernel; `type` names the operation.
struct DnnProblem {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  Dnn4d x;
  Dnn4d w;
  Dnn4d y;
  bool accumulate = false;
  bool strict = false;  // float32 without TF32
};

// Padding at the end of a dimension: as at the start if that gives the same output, since few
// engines know two, else the least that does.
int64_t end_padding(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t start) {
  const int64_t reach = dilation * (kernel - 1) + 1;
  const int64_t padded = in + 2 * start - reach;
  if (padded >= 0 && padded / stride + 1 == out) return start;
  return std::max<int64_t>(0, (out - 1) * stride + reach - in - start);
}

DnnDescriptor tensor_descriptor(const Dnn4d& t, int64_t id) {
  DnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, t.type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, t.strides);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, t.alignment);
  d.finalize();
  return d;
}

DnnDescriptor convolution_descriptor(const ConvGeometry& g) {
  DnnDescriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {g.dilation.h, g.dilation.w});
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {g.stride.h, g.stride.w});
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {g.pad_top, g.pad_left});
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
        {end_padding(g.in.h, g.out.h, g.kernel.h, g.stride.h, g.dilation.h, g.pad_top),
         end_padding(g.in.w, g.out.w, g.kernel.w, g.stride.w, g.dilation.w, g.pad_left)});
  d.finalize();
  return d;
}

// Names of an operation's attributes.
struct OperationNames {
  cudnnBackendAttributeName_t x;
  cudnnBackendAttributeName_t w;
  cudnnBackendAttributeName_t y;
  cudnnBackendAttributeName_t convolution;
  cudnnBackendAttributeName_t alpha;
  cudnnBackendAttributeName_t beta;
};
OperationNames names_of(cudnnBackendDescriptorType_t type) {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// An operation graph of one convolution, with all that it refers to.
struct DnnGraph {
  DnnDescriptor x;
  DnnDescriptor w;
  DnnDescriptor y;
  DnnDescriptor convolution;
  DnnDescriptor operation;
  DnnDescriptor graph;

  DnnGraph(const ConvGeometry& g, const DnnProblem& p, cudnnHandle_t handle)
      : x(tensor_descriptor(p.x, kX)),
        w(tensor_descriptor(p.w, kW)),
        y(tensor_descriptor(p.y, kY)),
        convolution(convolution_descriptor(g)),
        operation(p.type),
        graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const OperationNames names = names_of(p.type);
    operation.set(names.x, x);
    operation.set(names.w, w);
    operation.set(names.y, y);
    operation.set(names.convolution, convolution);
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, p.accumulate ? 1.0F : 0.0F);
    operation.finalize();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.set(kGraphHandle, CUDNN_TYPE_HANDLE, handle);
    graph.finalize();
  }
};

// Engine configurations in the order of cuDNN's estimate.
std::vector<DnnDescriptor> configurations(const DnnGraph& graph, cudnnBackendHeurMode_t mode) {
  DnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (cudnnBackendFinalize(heuristic.raw()) != CUDNN_STATUS_SUCCESS) return {};
  int64_t count = 0;
  GABLE_DNN_CHECK(cudnnBackendGetAttribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<DnnDescriptor> results;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i)
    raw.push_back(results.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  if (count == 0) return results;
  int64_t got = 0;
  GABLE_DNN_CHECK(cudnnBackendGetAttribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, raw.data()));
  while (static_cast<int64_t>(results.size()) > got) results.pop_back();
  return results;
}

bool compiles(cudnnBackendDescriptor_t engine) {
  std::array<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> notes = {};
  int64_t count = 0;
  if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                               CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count,
                               notes.data()) != CUDNN_STATUS_SUCCESS)
    return true;
  return std::find(notes.begin(), notes.begin() + count, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) !=
         notes.begin() + count;
}

// Engines that are compiled at run time take seconds to build, once for each geometry.
bool acceptable(const DnnDescriptor& configuration, bool strict) {
  const DnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.raw(), CUDNN_ATTR_ENGINECFG_ENGINE,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &raw) != CUDNN_STATUS_SUCCESS)
    return false;
  if (compiles(raw)) return false;
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes = {};
  if (cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                               notes.data()) != CUDNN_STATUS_SUCCESS)
    return false;
  for (int64_t i = 0; i < count; ++i) {
    switch (notes[static_cast<size_t>(i)]) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return false;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        if (strict) return false;
        break;
      default: break;
    }
  }
  return true;
}

struct DnnPointers {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
};

// A built engine.
struct DnnExecution {
  DnnDescriptor configuration;
  DnnDescriptor plan;
  int64_t workspace_bytes = 0;

  void run(const DnnPointers& pointers, const Stream& stream) const {
    const Scratch<char> workspace(workspace_bytes, stream);
    DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    void* data[] = {pointers.x, pointers.w, pointers.y};
    const int64_t ids[] = {kX, kW, kY};
    void* scratch = workspace.data();
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, scratch);
    pack.finalize();
    const DnnHandle handle(stream);
    GABLE_DNN_CHECK(cudnnBackendExecute(handle.raw(), plan.raw(), pack.raw()));
  }
};

// nullopt where the engine does not build or wants too much memory.
std::optional<DnnExecution> build(DnnDescriptor configuration, cudnnHandle_t handle) {
  DnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(kPlanHandle, CUDNN_TYPE_HANDLE, handle);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(plan.raw()) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  int64_t bytes = 0;
  int64_t count = 0;
  GABLE_DNN_CHECK(cudnnBackendGetAttribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                           CUDNN_TYPE_INT64, 1, &count, &bytes));
  if (bytes > kWorkspaceLimit) return std::nullopt;
  return DnnExecution{std::move(configuration), std::move(plan), bytes};
}

// A graph and the engine that runs it.
class DnnPlan {
 public:
  /// Null where cuDNN has nothing that fits. Overwrites what the result's pointer names.
  static std::unique_ptr<DnnPlan> make(const ConvGeometry& g, const DnnProblem& problem,
                                       const DnnPointers& pointers, const Stream& stream) {
    auto plan = std::make_unique<DnnPlan>();
    std::vector<DnnExecution> candidates;
    try {
      const DnnHandle handle(stream);
      plan->graph_ = std::make_unique<DnnGraph>(g, problem, handle.raw());
      for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        if (!candidates.empty()) break;
        for (DnnDescriptor& configuration : configurations(*plan->graph_, mode)) {
          if (candidates.size() == (may_measure() ? kCandidates : 1)) break;
          if (!acceptable(configuration, problem.strict)) continue;
          if (auto built = build(std::move(configuration), handle.raw()))
            candidates.push_back(std::move(*built));
        }
      }
    } catch (const CudaError&) {  // a graph that cuDNN refuses
      return nullptr;
    }
    float least = std::numeric_limits<float>::infinity();
    size_t best = may_measure() ? candidates.size() : 0;
    for (size_t i = 0; may_measure() && i < candidates.size(); ++i) {
      try {
        const float time = measure(stream, [&] { candidates[i].run(pointers, stream); });
        if (time >= least) continue;
        least = time;
        best = i;
      } catch (const Error&) {  // an engine that builds but does not run, or memory is short
      }
    }
    if (best == candidates.size()) return nullptr;
    plan->execution_.emplace(std::move(candidates[best]));
    return plan;
  }

  void run(const DnnPointers& pointers, const Stream& stream) const {
    execution_->run(pointers, stream);
  }
  bool converts = false;  ///< the weight gradient comes in the storage type

 private:
  std::unique_ptr<DnnGraph> graph_;
  std::optional<DnnExecution> execution_;
};

// --- problems of the three kernels

template <class T>
Dnn4d weight_tensor(const ConvGeometry& g, cudnnDataType_t type, const T* data) {
  const int64_t in = g.group_in();
  return {type,
          {g.out_channels, in, g.kernel.h, g.kernel.w},
          {g.taps() * in, 1, g.kernel.w * in, in},
          ConvKey::alignment(data)};
}

template <class T>
DnnProblem problem_of(const Conv2dArgs<T>& args) {
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          tensor_of(args.x),
          weight_tensor(args.g, data_type<T>(), args.w.data),
          tensor_of(args.y),
          args.bias.data != nullptr,
          std::is_same_v<T, float> && !allow_tf32()};
}
template <class T>
DnnProblem problem_of(const Conv2dInputGradArgs<T>& args) {
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          tensor_of(args.dx),
          weight_tensor(args.g, data_type<T>(), args.w.data),
          tensor_of(args.dy),
          args.bias.data != nullptr,
          std::is_same_v<T, float> && !allow_tf32()};
}
template <class T>
DnnProblem problem_of(const Conv2dWeightGradArgs<T>& args) {
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          tensor_of(args.x),
          weight_tensor(args.g, CUDNN_DATA_FLOAT, args.dw.data),
          tensor_of(args.dy),
          false,
          std::is_same_v<T, float> && !allow_tf32()};
}

template <class T>
DnnPointers pointers_of(const Conv2dArgs<T>& args) {
  return {const_cast<T*>(args.x.data), const_cast<T*>(args.w.data), args.y.data};
}
template <class T>
DnnPointers pointers_of(const Conv2dInputGradArgs<T>& args) {
  return {args.dx.data, const_cast<T*>(args.w.data), const_cast<T*>(args.dy.data)};
}
template <class T>
DnnPointers pointers_of(const Conv2dWeightGradArgs<T>& args) {
  return {const_cast<T*>(args.x.data), args.dw.data, const_cast<T*>(args.dy.data)};
}

template <class T>
std::unique_ptr<DnnPlan> make_plan(const Conv2dArgs<T>& args, const Stream& stream) {
  return DnnPlan::make(args.g, problem_of(args), pointers_of(args), stream);
}
template <class T>
std::unique_ptr<DnnPlan> make_plan(const Conv2dInputGradArgs<T>& args, const Stream& stream) {
  return DnnPlan::make(args.g, problem_of(args), pointers_of(args), stream);
}
// Gradients of 16-bit weights in float where an engine writes them so (cuDNN 9.19 has only ones
// that are compiled at run time), else in 16 bits, though summed in float, with a conversion.
template <class T>
std::unique_ptr<DnnPlan> make_plan(const Conv2dWeightGradArgs<T>& args, const Stream& stream) {
  DnnProblem problem = problem_of(args);
  DnnPointers pointers = pointers_of(args);
  auto plan = DnnPlan::make(args.g, problem, pointers, stream);
  if (plan != nullptr || std::is_same_v<T, float>) return plan;
  const Scratch<T> small(args.dw.numel(), stream);
  pointers.w = small.data();
  problem.w = weight_tensor(args.g, data_type<T>(), small.data());
  plan = DnnPlan::make(args.g, problem, pointers, stream);
  if (plan != nullptr) plan->converts = true;
  return plan;
}

// out = bias, along the channels.
template <class T>
void spread_bias(const TensorView<T>& out, const TensorView<const T>& bias, const Stream& stream) {
  if (bias.data == nullptr) return;
  const Layout spread(out.shape(), Strides{0, bias.stride(0), 0, 0}, 0, current_op());
  strided_copy(any_view(out), any_view(TensorView<const T>{bias.data, spread}), stream);
}

template <class T>
void run_plan(const DnnPlan& plan, const Conv2dArgs<T>& args, const Stream& stream) {
  spread_bias(args.y, args.bias, stream);
  plan.run(pointers_of(args), stream);
}
template <class T>
void run_plan(const DnnPlan& plan, const Conv2dInputGradArgs<T>& args, const Stream& stream) {
  spread_bias(args.dx, args.bias, stream);
  plan.run(pointers_of(args), stream);
}
template <class T>
void run_plan(const DnnPlan& plan, const Conv2dWeightGradArgs<T>& args, const Stream& stream) {
  DnnPointers pointers = pointers_of(args);
  if (!plan.converts) {
    plan.run(pointers, stream);
    return;
  }
  const Scratch<T> small(args.dw.numel(), stream);
  pointers.w = small.data();
  plan.run(pointers, stream);
  strided_copy(any_view(args.dw), any_view(TensorView<T>{small.data(), args.dw.layout}), stream);
}

// Plans by geometry; a null plan says that there is none.
template <class Args>
struct DnnPlans {
  std::mutex mutex;
  std::map<ConvKey, std::unique_ptr<DnnPlan>> plans;
};
template <class Args>
DnnPlans<Args>& plans() {
  static auto* all = new DnnPlans<Args>;
  return *all;
}

template <class T>
bool describable(const Image<T>& image) {
  return image.images > 0 && image.channels > 0 && image.image_step > 0 && image.row_step > 0 &&
         image.pixel_step > 0;
}
template <class T>
bool describable(const Conv2dArgs<T>& args) {
  return describable(Image<const T>(args.x)) && args.g.out_channels > 0;
}
template <class T>
bool describable(const Conv2dInputGradArgs<T>& args) {
  return describable(Image<const T>(args.dy)) && args.g.in_channels > 0;
}
template <class T>
bool describable(const Conv2dWeightGradArgs<T>& args) {
  return describable(Image<const T>(args.x)) && describable(Image<const T>(args.dy));
}

template <class Args>
inline constexpr bool kDouble = false;
template <>
inline constexpr bool kDouble<Conv2dArgs<double>> = true;
template <>
inline constexpr bool kDouble<Conv2dInputGradArgs<double>> = true;
template <>
inline constexpr bool kDouble<Conv2dWeightGradArgs<double>> = true;

}  // namespace

template <class Args>
bool cudnn_supports(const Args& args, const Stream& stream) {
  if constexpr (!kDouble<Args>) {
    if (!describable(args)) return false;
    const ConvKey key = conv_key(args, stream.device);
    DnnPlans<Args>& all = plans<Args>();
    const std::lock_guard lock(all.mutex);
    if (const auto it = all.plans.find(key); it != all.plans.end()) return it->second != nullptr;
    if (is_capturing(stream)) return false;  // plans are measured
    return all.plans.emplace(key, make_plan(args, stream)).first->second != nullptr;
  }
  return false;
}

template <class Args>
void cudnn_conv(const Args& args, const Stream& stream) {
  if constexpr (!kDouble<Args>) {
    const DnnPlan* plan = nullptr;
    {
      const ConvKey key = conv_key(args, stream.device);
      DnnPlans<Args>& all = plans<Args>();
      const std::lock_guard lock(all.mutex);
      if (const auto it = all.plans.find(key); it != all.plans.end()) plan = it->second.get();
    }
    check<Error>(plan != nullptr, Args::name, "expected a plan of cuDNN, got none");
    run_plan(*plan, args, stream);
  }
}

#define GABLE_CUDNN(...)                                           \
  template bool cudnn_supports(const __VA_ARGS__&, const Stream&); \
  template void cudnn_conv(const __VA_ARGS__&, const Stream&);
GABLE_CONV_ARGS(GABLE_CUDNN)

}  // namespace gable::cuda
