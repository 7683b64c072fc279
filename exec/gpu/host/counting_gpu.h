// A call table of a device that does nothing, used to count the memory that work allocates.
#pragma once

#include "exec/gpu/calls.h"

namespace bubblescope::exec {

/// Simulates one device. Implements the calls of GpuMachine and GpuLayers; the memory that it
/// returns must not be accessed.
const BubblescopeGpu& counting_gpu_calls();

}  // namespace bubblescope::exec
