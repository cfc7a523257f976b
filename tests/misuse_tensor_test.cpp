// SPDX-License-Identifier: Apache-2.0
// Misuse of creation, element access, views and shape operators.
#include <cmath>
#include <cstdint>

#include "gable/core/parallel.hpp"
#include "gable/ops/concat.hpp"
#include "gable/ops/pad.hpp"
#include "gable/tensor/random.hpp"
#include "misuse.hpp"

namespace gable::misuse {
namespace {

using F = const Fixture&;
const auto* const kShape = &typeid(ShapeError);
const auto* const kType = &typeid(TypeError);
const auto* const kIndex = &typeid(IndexError);
const auto* const kDevice = &typeid(DeviceError);
const auto* const kError = &typeid(Error);
constexpr Device kGpu{DeviceType::cuda, 0};

TEST(Misuse, CreationAndElements) {
  run({
      {"negative size",
       [](F) {
         (void)zeros<float>({2, -1});
       },
       kShape,
       {"[layout]", "(2, -1)"}},
      {"rank 9",
       [](F) {
         (void)zeros<float>(Dims{1, 1, 1, 1, 1, 1, 1, 1, 1});
       },
       kShape,
       {"8", "9"}},
      {"2^63 elements",
       [](F) {
         (void)zeros<uint8_t>({INT64_MAX, 2});
       },
       kShape,
       {"[layout]", "2^63"}},
      {"2^63 bytes", [](F) { (void)empty<double>({INT64_MAX / 2}); }, kShape, {"[empty]", "bytes"}},
      {"more than there is",
       [](F) { (void)empty<uint8_t>({int64_t{1} << 60}); },
       kError,
       {"[allocate]"}},
      {"channels-last matrix",
       [](F) {
         (void)zeros<float>({2, 2}, {.format = MemoryFormat::channels_last});
       },
       kShape,
       {"rank >= 3", "(2, 2)"}},
      {"wrong count",
       [](F) {
         (void)from_data<float>({1, 2, 3}, {2, 2});
       },
       kShape,
       {"[from_data]", "4 values", "(2, 2)", "got 3"}},
      {"null blob",
       [](F) { (void)from_blob<float>(nullptr, {2}); },
       kType,
       {"[from_blob]", "(2)", "null"}},
      {"step 0", [](F) { (void)arange<float>(0, 5, 0); }, kType, {"[arange]", "step"}},
      {"infinite range",
       [](F) { (void)arange<float>(0, INFINITY); },
       kType,
       {"[arange]", "finite"}},
      {"negative count",
       [](F) { (void)linspace<float>(0, 1, -2); },
       kShape,
       {"[linspace]", "got -2"}},
      {"crossed bounds", [](F) { (void)rand<float>({2}, 3, 1); }, kType, {"[rand]", "3 and 1"}},
      {"negative spread", [](F) { (void)randn<float>({2}, 0, -1); }, kType, {"[randn]", "-1"}},
      {"empty range",
       [](F) { (void)randint<int32_t>(5, 5, {2}); },
       kType,
       {"[randint]", "5 and 5"}},
      {"probability 2",
       [](F) { (void)bernoulli(2, {2}); },
       kType,
       {"[bernoulli]", "[0, 1]", "got 2"}},
      {"negative permutation", [](F) { (void)randperm(-1); }, kShape, {"[randperm]", "got -1"}},
      {"index past the end",
       [](F f) { (void)f.x(2, 0); },
       kIndex,
       {"[index]", "[-2, 1]", "(2, 3)", "got 2"}},
      {"too few indices", [](F f) { (void)f.x(0); }, kIndex, {"[index]", "2 indices", "got 1"}},
      {"item of many", [](F f) { (void)f.x.item(); }, kShape, {"[item]", "(2, 3)"}},
      {"item of nothing", [](F f) { (void)f.undefined.item(); }, kShape, {"[item]"}},
      {"size of dimension 2",
       [](F f) { (void)f.x.size(2); },
       kIndex,
       {"[size]", "[-2, 1]", "got 2"}},
      {"another dtype",
       [](F f) { (void)f.x.any().as<double>(); },
       kType,
       {"[as]", "float64", "float32"}},
      {"absent device", [](F f) { (void)f.x.to(kGpu); }, kDevice, {"cuda"}},
      {"creation on an absent device",
       [](F) { (void)zeros<float>({2}, {.device = kGpu}); },
       kDevice,
       {"cuda"}},
      {"no threads", [](F) { set_num_threads(0); }, kType, {"[set_num_threads]", "got 0"}},
      {"unknown dtype", [](F) { (void)dtype_from_name("float8"); }, kType, {"float8"}},
  });
}

TEST(Misuse, Views) {
  run({
      {"narrow past the end",
       [](F f) { (void)f.x.narrow(1, 2, 2); },
       kIndex,
       {"[narrow]", "(2, 3)", "start 2 length 2"}},
      {"narrow before the start",
       [](F f) { (void)f.x.narrow(1, -4, 1); },
       kIndex,
       {"[narrow]", "start -4"}},
      {"select past the end", [](F f) { (void)f.x.select(0, 2); }, kIndex, {"[select]", "got 2"}},
      {"dimension 2 of 2", [](F f) { (void)f.x.select(2, 0); }, kIndex, {"[select]", "[-2, 1]"}},
      {"step 0", [](F f) { (void)f.x.slice(0, 0, 2, 0); }, kIndex, {"[slice]", "step"}},
      {"transpose of a missing dimension",
       [](F f) { (void)f.x.transpose(0, 3); },
       kIndex,
       {"[transpose]", "got 3"}},
      {"permutation with a repeat",
       [](F f) {
         (void)f.x.permute({0, 0});
       },
       kShape,
       {"[permute]", "(0, 0)"}},
      {"view of another size",
       [](F f) {
         (void)f.x.view({4, 2});
       },
       kShape,
       {"[view]", "(2, 3)", "(4, 2)"}},
      {"view across strides",
       [](F f) { (void)f.x.t().view({6}); },
       kShape,
       {"[view]", "(6)", "reshape"}},
      {"two unknown sizes",
       [](F f) {
         (void)f.x.reshape({-1, -1});
       },
       kShape,
       {"[reshape]", "(-1, -1)"}},
      {"expand of size 3",
       [](F f) {
         (void)f.x.expand({2, 6});
       },
       kShape,
       {"[expand]", "(2, 3)", "(2, 6)"}},
      {"broadcast to fewer dimensions",
       [](F f) { (void)f.x.broadcast_to({3}); },
       kShape,
       {"[broadcast_to]", "(2, 3)", "(3)"}},
      {"window larger than the size",
       [](F f) { (void)f.y.unfold(0, 5, 1); },
       kShape,
       {"[unfold]", "size 4", "got 5"}},
      {"diagonal of one dimension",
       [](F f) { (void)f.x.diagonal(0, 1, 1); },
       kShape,
       {"[diagonal]", "(2, 3)"}},
      {"outside the storage",
       [](F f) {
         (void)f.x.as_strided({2, 4}, {3, 1}, 0);
       },
       kShape,
       {"[as_strided]", "sizes (2, 4) strides (3, 1) offset 0", "6 elements"}},
      {"view of nothing",
       [](F f) { (void)reshape(f.undefined, {1}); },
       kShape,
       {"[reshape]", "undefined"}},
      {"cat of nothing",
       [](F) { (void)cat(std::vector<Tensor<float>>{}); },
       kShape,
       {"[cat]", "empty list"}},
      {"cat of other sizes",
       [](F f) {
         (void)cat({f.x, f.m});
       },
       kShape,
       {"[cat]", "(2, 3)", "(3, 4)"}},
      {"cat into a wrong output",
       [](F f) {
         cat_out(f.m, {f.x, f.x});
       },
       kShape,
       {"[cat]", "(4, 3)", "(3, 4)"}},
      {"stack of other shapes",
       [](F f) {
         (void)stack({f.x, f.m});
       },
       kShape,
       {"[stack]", "(2, 3)", "(3, 4)"}},
      {"split that does not add up",
       [](F f) {
         (void)split(f.x, {1, 1}, 1);
       },
       kShape,
       {"[split]", "3", "(1, 1)"}},
      {"no chunks", [](F f) { (void)chunk(f.x, 0); }, kShape, {"[chunk]", "got 0"}},
      {"odd padding", [](F f) { (void)pad(f.x, {1}); }, kShape, {"[pad]", "(1)", "(2, 3)"}},
      {"reflection wider than the image",
       [](F f) {
         (void)pad(f.x, {3, 3}, PadMode::reflect);
       },
       kShape,
       {"[pad]", "at most 2"}},
      {"shifts without dimensions",
       [](F f) {
         (void)roll(f.x, {1, 2}, {0});
       },
       kShape,
       {"[roll]", "(1, 2)", "(0)"}},
      {"flip of a missing dimension",
       [](F f) { (void)flip(f.x, {2}); },
       kIndex,
       {"[flip]", "got 2"}},
  });
}

}  // namespace
}  // namespace gable::misuse
