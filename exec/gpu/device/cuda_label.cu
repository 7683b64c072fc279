// NVTX ranges for profilers. NVTX is header-only and does nothing without a profiler.
#include "exec/gpu/device/cuda_calls.cuh"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define BUBBLESCOPE_HAS_NVTX
#endif

namespace bubblescope::exec {

namespace {

void label(const char* text) {
#ifdef BUBBLESCOPE_HAS_NVTX
  if (text != nullptr)
    nvtxRangePushA(text);
  else
    nvtxRangePop();
#else
  static_cast<void>(text);
#endif
}

}  // namespace

void add_label_call(BubblescopeGpu& calls) { calls.label = label; }

}  // namespace bubblescope::exec
