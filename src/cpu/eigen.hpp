// SPDX-License-Identifier: Apache-2.0
// Eigen for the CPU backend. The namespace is renamed: these files may be compiled for a newer
// instruction set than the user's own Eigen code, and the linker must not mix the two.
#pragma once

#define Eigen gable_eigen
#define EIGEN_DONT_PARALLELIZE  // gable splits the work itself, the same way for any thread count
#define EIGEN_MPL2_ONLY
#include <Eigen/Core>
#undef Eigen

namespace eigen = gable_eigen;
