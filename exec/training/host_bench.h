// GEMMs of this host, as the backends without devices train with.
#pragma once

#include <memory>

#include "exec/runtime/kernel_bench.h"

namespace bubblescope::exec {

/// Opens the GEMMs of one core, in float32.
std::unique_ptr<KernelBench> open_host_bench();

}  // namespace bubblescope::exec
