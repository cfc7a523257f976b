// SPDX-License-Identifier: Apache-2.0
// All modules and initialisers.
#pragma once

#include "gable/nn/activation.hpp"
#include "gable/nn/conv.hpp"
#include "gable/nn/embedding.hpp"
#include "gable/nn/init.hpp"
#include "gable/nn/linear.hpp"
#include "gable/nn/module.hpp"
#include "gable/nn/norm.hpp"
#include "gable/nn/pool.hpp"
#include "gable/nn/sequential.hpp"
#include "gable/nn/softmax.hpp"
