// SPDX-License-Identifier: Apache-2.0
// Link-time stub of the CUDA backend for builds without it: every entry throws DeviceError.
#include "gable/memory/allocator.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/memory/event.hpp"
#include "gable/ops/kernel_list.hpp"
#include "gable/tensor/backend.hpp"

namespace gable::cuda {

namespace {
[[noreturn]] void refuse(Where where) {
  fail<DeviceError>(where,
                    "expected device cpu, got cuda: this build of gable has no CUDA backend");
}
}  // namespace

int device_count() { return 0; }
std::string unavailable_reason() { return "this build of gable has no CUDA backend"; }
std::string device_name(Device) { refuse("device_name"); }
Stream current_stream(Device) { refuse("stream"); }
void synchronize(Device) { refuse("synchronize"); }
Allocator& allocator(Device) { refuse("allocate"); }
std::vector<MemoryBlock> memory_table(Device) { refuse("memory_table"); }
void set_allow_tf32(bool) { refuse("set_allow_tf32"); }
bool allow_tf32() { return false; }
std::string last_conv_engine() { return {}; }
Storage pinned_storage(int64_t) { refuse("pinned_storage"); }
Event::Event(Device device) : device_(device) { refuse("event"); }
Event::~Event() = default;
void Event::record() { refuse("event"); }
void Event::synchronize() const { refuse("event"); }
void Event::block(const Stream&) const { refuse("event"); }
double Event::milliseconds(const Event&, const Event&) { refuse("event"); }
StreamScope::StreamScope(const Stream& stream) : stream_(stream) { refuse("stream"); }
StreamScope::~StreamScope() = default;

template <KernelArgs Args>
void run(const Args&, const Stream&) {
  refuse(Args::name);
}

#define ONE(...) template void run<__VA_ARGS__>(const __VA_ARGS__&, const Stream&);
#define FLOATS(Args) ONE(Args<float>) ONE(Args<double>) ONE(Args<half>) ONE(Args<bfloat16>)
#define NUMERIC(Args) FLOATS(Args) ONE(Args<int32_t>) ONE(Args<int64_t>) ONE(Args<uint8_t>)
#define ALL(Args) NUMERIC(Args) ONE(Args<bool>)
GABLE_KERNELS(ONE, FLOATS, NUMERIC, ALL)
#define REDUCE(...) ONE(ReduceArgs<__VA_ARGS__>)
#define REDUCE_BACKWARD(...) ONE(ReduceBackwardArgs<__VA_ARGS__>)
GABLE_WIDE_REDUCE_KERNELS(REDUCE)
GABLE_REDUCE_KERNELS_OF(REDUCE, REDUCE_BACKWARD, float)
GABLE_REDUCE_KERNELS_OF(REDUCE, REDUCE_BACKWARD, double)
GABLE_REDUCE_KERNELS_OF(REDUCE, REDUCE_BACKWARD, half)
GABLE_REDUCE_KERNELS_OF(REDUCE, REDUCE_BACKWARD, bfloat16)

#define FOR_FLOATS(M, F) M(F, float) M(F, double) M(F, half) M(F, bfloat16)
#define FOR_NUMERIC(M, F) FOR_FLOATS(M, F) M(F, int32_t) M(F, int64_t) M(F, uint8_t)
#define FOR_ALL(M, F) FOR_NUMERIC(M, F) M(F, bool)
#define UNARY(F, T) ONE(UnaryArgs<F, T>)
#define UNARY_BACKWARD(F, T) ONE(UnaryBackwardArgs<F, T>)
#define PREDICATE(F, T) ONE(UnaryArgs<F, T, bool>)
#define BINARY(F, T) ONE(BinaryArgs<F, T>)
#define BINARY_BACKWARD(F, T) ONE(BinaryBackwardArgs<F, T>)
#define COMPARE(F, T) ONE(BinaryArgs<F, T, bool>)
#define UNARY_FLOAT(function, F) FOR_FLOATS(UNARY, F) FOR_FLOATS(UNARY_BACKWARD, F)
#define UNARY_NUMERIC(function, F) FOR_NUMERIC(UNARY, F) FOR_FLOATS(UNARY_BACKWARD, F)
#define BINARY_FLOAT(function, F) FOR_FLOATS(BINARY, F) FOR_FLOATS(BINARY_BACKWARD, F)
#define BINARY_NUMERIC(function, F) FOR_NUMERIC(BINARY, F) FOR_FLOATS(BINARY_BACKWARD, F)
#define PREDICATE_FLOAT(function, F) FOR_FLOATS(PREDICATE, F)
#define PREDICATE_ALL(function, F) FOR_ALL(PREDICATE, F)
#define COMPARE_ALL(function, F) FOR_ALL(COMPARE, F)
GABLE_UNARY_FLOAT_OPS(UNARY_FLOAT)
GABLE_UNARY_NUMERIC_OPS(UNARY_NUMERIC)
GABLE_BINARY_FLOAT_OPS(BINARY_FLOAT)
GABLE_BINARY_NUMERIC_OPS(BINARY_NUMERIC)
GABLE_PREDICATE_FLOAT_OPS(PREDICATE_FLOAT)
GABLE_PREDICATE_ALL_OPS(PREDICATE_ALL)
GABLE_COMPARE_OPS(COMPARE_ALL)

}  // namespace gable::cuda
