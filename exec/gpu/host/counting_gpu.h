// A table of calls for a device that does nothing: to count what work takes without doing it.
#pragma once

#include "exec/gpu/calls.h"

namespace bubblescope {

/// One device. Has what GpuMachine and GpuLayers call; the memory that it hands out must not be
/// touched.
const BubblescopeGpu& counting_gpu_calls();

}  // namespace bubblescope
