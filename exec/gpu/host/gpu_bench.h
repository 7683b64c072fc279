// GEMMs and copies of a GPU, timed alone.
#pragma once

#include <memory>

#include "exec/gpu/calls.h"
#include "exec/runtime/kernel_bench.h"

namespace bubblescope::exec {

/// GEMMs in bfloat16, W's into float32, on the first device. `calls` is not copied. Throws Error.
std::unique_ptr<KernelBench> open_gpu_bench(const BubblescopeGpu& calls);

}  // namespace bubblescope::exec
