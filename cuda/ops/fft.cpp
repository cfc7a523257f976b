// SPDX-License-Identifier: Apache-2.0
// Fourier transforms through cuFFT: a cache of plans, and dense stand-ins for views that a plan
// cannot walk.
#include "gable/ops/fft.hpp"

#include <cufftXt.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"
#include "runtime/scratch.hpp"
#include "runtime/strided_copy.hpp"
#include "runtime/sub_layout.hpp"

namespace gable {
namespace cuda {
namespace {

constexpr size_t kPlansKept = 32;  // a device

// All that decides a plan. Steps from one value to the next, real or complex, of a line and of a
// batch.
struct FftKey {
  FftKind kind = FftKind::complex;
  bool doubles = false;
  int64_t n = 0;
  int64_t batch = 0;
  int64_t in_step = 0;
  int64_t in_next = 0;
  int64_t out_step = 0;
  int64_t out_next = 0;
  friend bool operator==(const FftKey&, const FftKey&) = default;
};

const char* result_name(cufftResult result) {
  switch (result) {
    case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_TYPE: return "CUFFT_INVALID_TYPE";
    case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE";
    case CUFFT_INVALID_DEVICE: return "CUFFT_INVALID_DEVICE";
    case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE";
    case CUFFT_NOT_SUPPORTED: return "CUFFT_NOT_SUPPORTED";
    default: return "an error";
  }
}

void check_fft(cufftResult result, const char* expression, const FftKey& key,
               std::source_location where = std::source_location::current()) {
  if (result == CUFFT_SUCCESS) return;
  ignore_result(cudaGetLastError());
  throw CudaError(current_op(),
                  concat("expected success of ", expression, " for a ",
                         key.kind == FftKind::complex           ? "complex"
                         : key.kind == FftKind::real_to_complex ? "real-to-complex"
                                                                : "complex-to-real",
                         key.doubles ? " float64" : " float32", " transform of length ", key.n,
                         " in a batch of ", key.batch, ", got ", result_name(result), " (",
                         static_cast<int>(result), ")"),
                  where);
}
#define GABLE_FFT_CHECK(key, ...) check_fft((__VA_ARGS__), #__VA_ARGS__, key)

class FftPlan {
 public:
  explicit FftPlan(const FftKey& key) : key_(key) {
    GABLE_FFT_CHECK(key_, cufftCreate(&handle_.raw));
    GABLE_FFT_CHECK(key_, cufftSetAutoAllocation(handle_.raw, 0));
    const bool real_in = key.kind == FftKind::real_to_complex;
    const bool real_out = key.kind == FftKind::complex_to_real;
    const cudaDataType real = key.doubles ? CUDA_R_64F : CUDA_R_32F;
    const cudaDataType complex = key.doubles ? CUDA_C_64F : CUDA_C_32F;
    long long n = key.n;
    long long embed = key.n;  // steps count only beside one; of a single dimension it is not read
    GABLE_FFT_CHECK(key_, cufftXtMakePlanMany(handle_.raw, 1, &n, &embed, key.in_step, key.in_next,
                                              real_in ? real : complex, &embed, key.out_step,
                                              key.out_next, real_out ? real : complex, key.batch,
                                              &workspace_bytes_, complex));
  }

  void run(void* out, void* in, bool inverse, const Stream& stream) {
    const Scratch<char> workspace(static_cast<int64_t>(workspace_bytes_), stream);
    const std::lock_guard lock(mutex_);
    GABLE_FFT_CHECK(key_, cufftSetStream(handle_.raw, native(stream)));
    GABLE_FFT_CHECK(key_, cufftSetWorkArea(handle_.raw, workspace.data()));
    GABLE_FFT_CHECK(key_,
                    cufftXtExec(handle_.raw, in, out, inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
  }

 private:
  struct Handle {
    cufftHandle raw = -1;
    Handle() = default;
    ~Handle() {
      if (raw == -1) return;
      ignore_result(cudaDeviceSynchronize());  // its kernels may be queued
      static_cast<void>(cufftDestroy(raw));
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
  };

  FftKey key_;
  Handle handle_;
  size_t workspace_bytes_ = 0;
  std::mutex mutex_;  // stream and workspace are a part of the plan
};

// A device's plans, the last used first.
class FftPlans {
 public:
  std::shared_ptr<FftPlan> get(const FftKey& key) {
    const std::lock_guard lock(mutex_);
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if (it->first != key) continue;
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front().second;
    }
    plans_.emplace_front(key, std::make_shared<FftPlan>(key));
    if (plans_.size() > kPlansKept) plans_.pop_back();
    return plans_.front().second;
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<FftKey, std::shared_ptr<FftPlan>>> plans_;
};

FftPlans& plans_of(Device device) {
  static auto* all = new std::array<FftPlans, 64>;
  return (*all)[static_cast<size_t>(context(device).index)];
}

// --- views

// A view's lines, in values.
template <class T>
struct FftLines {
  Layout rest;  // an element a line; strides in elements
  int64_t unit;
  int64_t length;
  int64_t step;
  bool regular;  // a plan can walk a line

  FftLines(const TensorView<T>& view, bool complex) : unit(complex ? 2 : 1) {
    const int line = view.rank() - (complex ? 2 : 1);
    rest = sub_layout(view.layout, [&](int d) { return d < line; });
    length = view.size(line);
    step = length > 1 ? view.stride(line) / unit : 1;
    // cuFFT wants addresses aligned as complex values are, those of real ones too.
    regular =
        reinterpret_cast<uintptr_t>(view.data) % (2 * sizeof(T)) == 0 && step > 0 &&
        (!complex || (view.stride(line + 1) == 1 && (length == 1 || even(view.stride(line)))));
  }
  [[nodiscard]] bool even(int64_t stride) const { return stride % unit == 0; }
};

// Nothing where no plan can walk both views.
template <class T>
std::optional<FftKey> key_of(const FftArgs<T>& a) {
  const FftLines out(a.out, a.kind != FftKind::complex_to_real);
  const FftLines in(a.in, a.kind != FftKind::real_to_complex);
  const StridedLoop<2> loop({&out.rest, &in.rest});
  if (!out.regular || !in.regular || loop.rank() != 1) return std::nullopt;
  FftKey key{a.kind,  std::is_same_v<T, double>, a.n,      loop.numel(),
             in.step, in.step * in.length,       out.step, out.step * out.length};
  if (key.batch == 1) return key;
  const auto [out_next, in_next] = loop.row_strides();
  if (out_next <= 0 || in_next <= 0 || !out.even(out_next) || !in.even(in_next))
    return std::nullopt;
  key.out_next = out_next / out.unit;
  key.in_next = in_next / in.unit;
  return key;
}

template <class T>
TensorView<T> at_layout(const TensorView<T>& view, const Layout& layout) {
  return {view.data + layout.offset(), layout.with_offset(0)};
}
// Real (0) or imaginary (1) parts.
template <class T>
TensorView<T> part(const TensorView<T>& values, int64_t index) {
  return at_layout(values, values.layout.with_offset(0).select(-1, index));
}

// Zeros in the imaginary parts that a real signal's bins 0 and n / 2 of an even n do not have.
template <class T>
void clear_unpaired(const TensorView<T>& bins, int64_t n, const Stream& stream) {
  const TensorView<T> imaginary = part(bins, 1);
  std::optional<int64_t> stop;
  if (n % 2 != 0) stop = 1;
  fill_zero(at_layout(imaginary, imaginary.layout.slice(-1, 0, stop, std::max<int64_t>(1, n / 2))),
            stream);
}

// Lines of one value, where cuFFT has nothing to do.
template <class T>
void copy_values(const FftArgs<T>& a, const Stream& stream) {
  const bool to_complex = a.kind == FftKind::real_to_complex;
  if (to_complex) clear_unpaired(a.out, a.n, stream);
  strided_copy(any_view(to_complex ? part(a.out, 0) : a.out),
               any_view(a.kind == FftKind::complex_to_real ? part(a.in, 0) : a.in), stream);
}

template <class T>
void transform(const FftArgs<T>& args, const Stream& stream) {
  FftArgs<T> a = args;
  std::optional<Scratch<T>> in_copy;
  std::optional<Scratch<T>> out_copy;
  std::optional<FftKey> key;
  const bool to_real = a.kind == FftKind::complex_to_real;  // overwrites what it reads
  if (!to_real) key = key_of(a);
  if (!key) {
    in_copy.emplace(a.in.numel(), stream);
    const TensorView<T> copy{in_copy->data(), Layout(a.in.shape())};
    strided_copy(any_view(copy), any_view(a.in), stream);
    if (to_real) clear_unpaired(copy, a.n, stream);
    a.in = copy;
    key = key_of(a);
  }
  if (!key) {
    out_copy.emplace(a.out.numel(), stream);
    a.out = {out_copy->data(), Layout(a.out.shape())};
    key = key_of(a);
  }
  plans_of(stream.device)
      .get(key.value())
      ->run(a.out.data, const_cast<T*>(a.in.data), a.inverse, stream);
  if (a.kind == FftKind::real_to_complex) clear_unpaired(a.out, a.n, stream);
  if (a.scale != 1) scale_by(a.out, a.scale, stream);
  if (out_copy) strided_copy(any_view(args.out), any_view(a.out), stream);
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const FftArgs<T>& args, const Stream& stream) {
  if (args.out.numel() == 0) return;
  if (args.n > 1) {
    cuda::transform(args, stream);
    return;
  }
  cuda::copy_values(args, stream);
  if (args.scale != 1) cuda::scale_by(args.out, args.scale, stream);
}

}  // namespace gable

GABLE_CUDA_KERNEL(gable::FftArgs<float>)
GABLE_CUDA_KERNEL(gable::FftArgs<double>)
