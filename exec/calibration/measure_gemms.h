// Measures the rates of GEMMs on a device, for a file that describes it.
#pragma once

#include <vector>

#include "exec/runtime/kernel_bench.h"

namespace bubblescope::exec {

struct MeasuredKernels {
  std::vector<MeasuredGemm> gemms;
  double copied_bytes_per_second = 0;  ///< read and written each count once
};

/// Measures F, I and W of 33 shapes of transformers' layers, and copies, for about so long. Every
/// GEMM runs back to back for its share of the time, so that its rate is what the device sustains
/// under its power limit. On devices where the largest would take too long, all sides are halved
/// until they do not.
MeasuredKernels measure_kernels(KernelBench& bench, Nanos budget);

}  // namespace bubblescope::exec
