// SPDX-License-Identifier: Apache-2.0
// Every elementwise operator: X(function, functor) in the list of its kind. This one line makes
// the public function, its out and in-place forms, the kernels, the autograd node, the gradient
// check, the parity test, the benchmark and the roofline entry.
#pragma once

// T -> T, floating point only.
#define GABLE_UNARY_FLOAT_OPS(X) \
  X(exp, Exp)                    \
  X(log, Log)                    \
  X(log1p, Log1p)                \
  X(expm1, Expm1)                \
  X(sqrt, Sqrt)                  \
  X(rsqrt, Rsqrt)                \
  X(tanh, Tanh)                  \
  X(sigmoid, Sigmoid)            \
  X(leaky_relu, LeakyRelu)       \
  X(gelu, Gelu)                  \
  X(gelu_tanh, GeluTanh)         \
  X(silu, Silu)                  \
  X(softplus, Softplus)          \
  X(reciprocal, Reciprocal)      \
  X(sin, Sin)                    \
  X(cos, Cos)                    \
  X(floor, Floor)                \
  X(ceil, Ceil)                  \
  X(round, Round)                \
  X(div_scalar, DivScalar)       \
  X(rdiv_scalar, RdivScalar)     \
  X(pow_scalar, PowScalar)

// T -> T, floating point and integers.
#define GABLE_UNARY_NUMERIC_OPS(X) \
  X(neg, Neg)                      \
  X(abs, Abs)                      \
  X(square, Square)                \
  X(sign, Sign)                    \
  X(relu, Relu)                    \
  X(clamp, Clamp)                  \
  X(add_scalar, AddScalar)         \
  X(rsub_scalar, RsubScalar)       \
  X(mul_scalar, MulScalar)

// T -> bool.
#define GABLE_PREDICATE_FLOAT_OPS(X) \
  X(isnan, IsNan)                    \
  X(isinf, IsInf)                    \
  X(isfinite, IsFinite)
#define GABLE_PREDICATE_ALL_OPS(X) X(logical_not, LogicalNot)

// (T, T) -> T.
#define GABLE_BINARY_FLOAT_OPS(X) \
  X(div, Div)                     \
  X(pow, Pow)                     \
  X(atan2, Atan2)
#define GABLE_BINARY_NUMERIC_OPS(X) \
  X(add, Add)                       \
  X(sub, Sub)                       \
  X(mul, Mul)                       \
  X(maximum, Maximum)               \
  X(minimum, Minimum)

// (T, T) -> bool, all types.
#define GABLE_COMPARE_OPS(X) \
  X(eq, Eq)                  \
  X(ne, Ne)                  \
  X(lt, Lt)                  \
  X(le, Le)                  \
  X(gt, Gt)                  \
  X(ge, Ge)                  \
  X(logical_and, LogicalAnd) \
  X(logical_or, LogicalOr)   \
  X(logical_xor, LogicalXor)
