// SPDX-License-Identifier: Apache-2.0
// Everything but data sets, files and training loops; see docs/architecture.md for the layers.
#pragma once

#include "gable/autograd/apply.hpp"
#include "gable/autograd/gradcheck.hpp"
#include "gable/autograd/variable.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/tensor/random.hpp"
#include "gable/tensor/state_dict.hpp"
#include "gable/tensor/tensor.hpp"
