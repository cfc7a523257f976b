// SPDX-License-Identifier: Apache-2.0
// A wait on the stream.
#pragma once

#include "gable/core/device.hpp"

namespace gable::cuda {

/// Keeps the stream busy for so long, for the host to queue what is to be timed behind it.
void delay(const Stream& stream, unsigned microseconds);

}  // namespace gable::cuda
