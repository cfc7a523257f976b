// SPDX-License-Identifier: Apache-2.0
// Copies: on one device, to and from the host, between devices.
#include "copy.hpp"

#include <cstdlib>

#include "device/elementwise.cuh"
#include "gable/tensor/any_tensor.hpp"
#include "kernel.hpp"
#include "runtime/fault.hpp"
#include "runtime/scratch.hpp"

namespace gable {
namespace cuda {

namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads; each moves four elements a direction

// dst has stride 1 along rows' dimension, src along columns': both sides are read and written in
// lines through a tile of shared memory.
template <class Bits>
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_kernel(Bits* dst, const Bits* src, int64_t rows, int64_t columns, int64_t dst_column,
                     int64_t src_row, unsigned row_tiles, unsigned column_tiles,
                     const StridedIndex<2> outer) {
  __shared__ Bits tile[kTile][kTile + 1];
  const unsigned block = blockIdx.x;
  const unsigned row_tile = block % row_tiles;
  const unsigned column_tile = block / row_tiles % column_tiles;
  const Offsets<2> o = outer.offsets(block / (row_tiles * column_tiles));
  dst += o.at[0];
  src += o.at[1];
  const int64_t r0 = static_cast<int64_t>(row_tile) * kTile;
  const int64_t c0 = static_cast<int64_t>(column_tile) * kTile;
  const int64_t c = c0 + threadIdx.x;
  for (int j = threadIdx.y; j < kTile; j += kTileRows)
    if (c < columns && r0 + j < rows) tile[j][threadIdx.x] = src[c + (r0 + j) * src_row];
  __syncthreads();
  const int64_t r = r0 + threadIdx.x;
  for (int j = threadIdx.y; j < kTile; j += kTileRows)
    if (r < rows && c0 + j < columns) dst[r + (c0 + j) * dst_column] = tile[threadIdx.x][j];
}

// A copy whose rows lie across memory in the source (NCHW to NHWC, a transposed matrix). False
// where it is not one.
template <class Bits>
bool copy_transposed(const StridedLoop<2>& loop, Bits* dst, const Bits* src, const Stream& stream) {
  const int row = loop.rank() - 1;
  if (loop.strides(row)[0] != 1 || loop.strides(row)[1] == 1) return false;
  int column = -1;
  for (int d = 0; d < row; ++d)
    if (loop.strides(d)[1] == 1) column = d;
  if (column < 0 || loop.size(column) < 4) return false;
  // The other dimensions, as a loop of their own.
  Shape sizes;
  Strides to;
  Strides from;
  for (int d = 0; d < row; ++d) {
    if (d == column) continue;
    sizes.push_back(loop.size(d));
    to.push_back(loop.strides(d)[0]);
    from.push_back(loop.strides(d)[1]);
  }
  const Layout to_layout(sizes, to, 0);
  const Layout from_layout(sizes, from, 0);
  const StridedIndex<2> outer(StridedLoop<2>({&to_layout, &from_layout}));
  const int64_t row_tiles = (loop.size(row) + kTile - 1) / kTile;
  const int64_t column_tiles = (loop.size(column) + kTile - 1) / kTile;
  if (row_tiles * column_tiles >= (int64_t{1} << 31) / outer.count()) return false;
  launch(stream,
         {static_cast<unsigned>(row_tiles * column_tiles * outer.count()), {kTile, kTileRows}},
         transpose_kernel<Bits>, dst, src, loop.size(row), loop.size(column),
         loop.strides(column)[0], loop.strides(row)[1], static_cast<unsigned>(row_tiles),
         static_cast<unsigned>(column_tiles), outer);
  return true;
}

struct Identity {
  template <class V>
  __device__ __forceinline__ void operator()(V& out, V in) const {
    out = in;
  }
};

// Bits are copied, whatever they mean: one instantiation a size.
template <class Bits>
void copy_same(const StridedLoop<2>& loop, const AnyView& dst, const AnyView& src,
               const Stream& stream) {
  if (copy_transposed(loop, static_cast<Bits*>(dst.data), static_cast<const Bits*>(src.data),
                      stream))
    return;
  elementwise<TypeList<Bits>, TypeList<Bits>>(stream, loop, Addresses<2>{{dst.data, src.data}},
                                              Identity{});
}

// The two lie in memory in the same order without gaps.
bool is_plain(const StridedLoop<2>& loop) {
  return loop.rank() == 1 &&
         (loop.numel() == 1 || (loop.row_strides()[0] == 1 && loop.row_strides()[1] == 1));
}

// Dense in the order of `like`, at `data`.
AnyView dense_view(void* data, const Layout& like, DType dtype) { return {data, like, dtype}; }

void copy_from_host(const AnyView& dst, const AnyView& src, const Stream& stream) {
  const Layout order = dst.layout.like();
  const size_t bytes = static_cast<size_t>(src.bytes());
  // On the host: made dense in the order of dst. On the device: conversion and strides.
  const void* host = src.data;
  Storage staging;
  if (!is_plain(StridedLoop<2>({&order, &src.layout}))) {
    staging = Storage::allocate(src.bytes());
    cpu::run(CopyArgs{dense_view(staging.data(), order, src.dtype), src});
    host = staging.data();
  }
  const bool direct = src.dtype == dst.dtype && is_plain(StridedLoop<2>({&dst.layout, &order}));
  Scratch<char> landing(direct ? 0 : src.bytes(), stream);
  void* device = direct ? dst.data : landing.data();
  GABLE_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, native(stream)));
  // From pageable memory the call returns once the bytes are taken over; page-locked memory is
  // read later, and the caller may write it as soon as this returns.
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, host) != cudaSuccess)
    ignore_result(cudaErrorUnknown);
  else if (attributes.type == cudaMemoryTypeHost)
    GABLE_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
  if (!direct) copy_on_device(dst, dense_view(device, order, src.dtype), false, stream);
}

void copy_to_host(const AnyView& dst, const AnyView& src, const Stream& stream) {
  const Layout order = src.layout.like();
  const bool direct = src.dtype == dst.dtype && is_plain(StridedLoop<2>({&order, &src.layout}));
  Scratch<char> leaving(direct ? 0 : dst.bytes(), stream);
  const void* device = src.data;
  if (!direct) {
    copy_on_device(dense_view(leaving.data(), order, dst.dtype), src, false, stream);
    device = leaving.data();
  }
  const bool lands = is_plain(StridedLoop<2>({&dst.layout, &order}));
  Storage staging;
  if (!lands) staging = Storage::allocate(dst.bytes());
  void* host = lands ? dst.data : staging.data();
  GABLE_CUDA_CHECK(cudaMemcpyAsync(host, device, static_cast<size_t>(dst.bytes()),
                                   cudaMemcpyDeviceToHost, native(stream)));
  GABLE_CUDA_CHECK(cudaStreamSynchronize(native(stream)));
  report_device_faults(stream.device);
  if (!lands) cpu::run(CopyArgs{dst, dense_view(host, order, dst.dtype)});
}

// Makes `later` wait for what is queued on `earlier` now.
void order_streams(const Stream& earlier, const Stream& later) {
  cudaEvent_t event = nullptr;
  {
    const DeviceGuard guard(earlier.device.index);
    GABLE_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GABLE_CUDA_CHECK(cudaEventRecord(event, native(earlier)));
  }
  const cudaError_t result = cudaStreamWaitEvent(native(later), event);
  ignore_result(cudaEventDestroy(event));  // freed once it has happened
  GABLE_CUDA_CHECK(result);
}

void copy_between_devices(const CopyArgs& args, const Stream& stream) {
  const Stream source = current_stream(args.src_device);
  const Layout order = args.src.layout.like();
  const bool dense = is_plain(StridedLoop<2>({&order, &args.src.layout}));
  Scratch<char> leaving(dense ? 0 : args.src.bytes(), source);
  const void* from = args.src.data;
  if (!dense) {
    const DeviceGuard guard(args.src_device.index);
    copy_on_device(dense_view(leaving.data(), order, args.src.dtype), args.src, false, source);
    from = leaving.data();
  }
  Scratch<char> landing(args.src.bytes(), stream);
  order_streams(source, stream);
  GABLE_CUDA_CHECK(cudaMemcpyPeerAsync(landing.data(), args.dst_device.index, from,
                                       args.src_device.index, static_cast<size_t>(args.src.bytes()),
                                       native(stream)));
  order_streams(stream, source);  // the source's memory may be handed out again after this
  copy_on_device(args.dst, dense_view(landing.data(), order, args.src.dtype), false, stream);
}

}  // namespace

void copy_on_device(const AnyView& dst, const AnyView& src, bool add, const Stream& stream) {
  if (add) return add_on_device(dst, src, stream);
  if (dst.dtype != src.dtype) {
    visit_dtype(dst.dtype, [&]<class To>(TypeTag<To>) { convert_copy<To>(dst, src, stream); });
    return;
  }
  const StridedLoop<2> loop({&dst.layout, &src.layout});
  if (is_plain(loop)) {
    GABLE_CUDA_CHECK(cudaMemcpyAsync(dst.data, src.data, static_cast<size_t>(dst.bytes()),
                                     cudaMemcpyDeviceToDevice, native(stream)));
    return;
  }
  switch (size_of(dst.dtype)) {
    case 1: return copy_same<uint8_t>(loop, dst, src, stream);
    case 2: return copy_same<uint16_t>(loop, dst, src, stream);
    case 4: return copy_same<uint32_t>(loop, dst, src, stream);
    default: return copy_same<uint64_t>(loop, dst, src, stream);
  }
}

}  // namespace cuda

static void kernel(const CopyArgs& args, const Stream& stream) {
  if (args.dst.layout.numel() == 0) return;
  if (args.src_device == args.dst_device)
    cuda::copy_on_device(args.dst, args.src, args.accumulate, stream);
  else if (args.src_device == kCpu)
    cuda::copy_from_host(args.dst, args.src, stream);
  else if (args.dst_device == kCpu)
    cuda::copy_to_host(args.dst, args.src, stream);
  else
    cuda::copy_between_devices(args, stream);
}
GABLE_CUDA_KERNEL(CopyArgs)

}  // namespace gable
