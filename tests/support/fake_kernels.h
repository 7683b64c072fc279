// The kernels, computed by exec/training in float32.
#pragma once

#include "exec/gpu/calls.h"

namespace bubblescope::tests {

void run_on_host(const exec::KernelLaunch& launch);
void run_on_host(const BubblescopeGemm& gemm);

}  // namespace bubblescope::tests
