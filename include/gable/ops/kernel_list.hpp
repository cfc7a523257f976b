// SPDX-License-Identifier: Apache-2.0
// Every kernel family with its dtypes, beside the elementwise ones of elementwise_list.hpp. A
// backend instantiates this list; src/no_cuda.cpp does for builds without CUDA.
//   ONE(Args)            a concrete struct
//   FLOATS(Args)         Args<T> for float, double, half, bfloat16
//   NUMERIC(Args)        FLOATS and int32, int64, uint8
//   ALL(Args)            NUMERIC and bool
#pragma once

#include "gable/ops/batch_norm.hpp"
#include "gable/ops/check_indices.hpp"
#include "gable/ops/conv_geometry.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/ops/fft.hpp"
#include "gable/ops/index.hpp"
#include "gable/ops/layer_norm.hpp"
#include "gable/ops/loss.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/ops/optimizer.hpp"
#include "gable/ops/pool.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/softmax.hpp"
#include "gable/ops/sort.hpp"
#include "gable/ops/where.hpp"
#include "gable/tensor/kernels.hpp"

#define GABLE_KERNELS(ONE, FLOATS, NUMERIC, ALL) \
  ONE(CopyArgs)                                  \
  ALL(SumArgs)                                   \
  FLOATS(MeanArgs)                               \
  ALL(ProdArgs)                                  \
  ALL(MaxArgs)                                   \
  ALL(MinArgs)                                   \
  ALL(AllArgs)                                   \
  ALL(AnyArgs)                                   \
  ALL(ArgMaxArgs)                                \
  ALL(ArgMinArgs)                                \
  FLOATS(SoftmaxArgs)                            \
  FLOATS(SoftmaxBackwardArgs)                    \
  ALL(CumsumArgs)                                \
  ONE(CheckIndicesArgs)                          \
  FLOATS(CrossEntropyArgs)                       \
  FLOATS(CrossEntropyBackwardArgs)               \
  FLOATS(MseLossArgs)                            \
  FLOATS(MseLossBackwardArgs)                    \
  FLOATS(L1LossArgs)                             \
  FLOATS(L1LossBackwardArgs)                     \
  FLOATS(BceLossArgs)                            \
  FLOATS(BceLossBackwardArgs)                    \
  ALL(GatherArgs)                                \
  NUMERIC(ScatterAddArgs)                        \
  ALL(IndexSelectArgs)                           \
  FLOATS(IndexAddArgs)                           \
  ALL(OneHotArgs)                                \
  ALL(SortArgs)                                  \
  ALL(FillArgs)                                  \
  ALL(RangeArgs)                                 \
  ALL(RandomArgs)                                \
  ONE(PermutationArgs)                           \
  FLOATS(SgdManyArgs)                            \
  FLOATS(AdamManyArgs)                           \
  ONE(ManyArgs<SquareSumArgs<float>>)            \
  ONE(ManyArgs<SquareSumArgs<double>>)           \
  ONE(ManyArgs<UnscaleArgs<float>>)              \
  ONE(ManyArgs<UnscaleArgs<double>>)             \
  ONE(ClipFactorArgs)                            \
  ONE(ScalerUpdateArgs)                          \
  NUMERIC(MatmulArgs)                            \
  ONE(MatmulArgs<half, float>)                   \
  ONE(MatmulArgs<bfloat16, float>)               \
  FLOATS(BatchNormStatsArgs)                     \
  FLOATS(BatchNormApplyArgs)                     \
  FLOATS(BatchNormBackwardArgs)                  \
  FLOATS(LayerNormArgs)                          \
  FLOATS(LayerNormBackwardArgs)                  \
  FLOATS(RmsNormArgs)                            \
  FLOATS(RmsNormBackwardArgs)                    \
  ONE(FftArgs<float>)                            \
  ONE(FftArgs<double>)                           \
  ALL(WhereArgs)                                 \
  FLOATS(LerpArgs)                               \
  FLOATS(LerpScalarArgs)                         \
  FLOATS(LerpScalarBackwardArgs)                 \
  FLOATS(DropoutArgs)                            \
  FLOATS(Conv2dArgs)                             \
  FLOATS(Conv2dInputGradArgs)                    \
  FLOATS(MaxPool2dArgs)                          \
  FLOATS(MaxPool2dBackwardArgs)                  \
  FLOATS(AvgPool2dArgs)                          \
  FLOATS(AvgPool2dBackwardArgs)                  \
  FLOATS(Conv2dWeightGradArgs)
