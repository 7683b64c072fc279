// Names for what is enqueued, which profilers show.
#pragma once

#include "exec/gpu/host/gpu.h"

namespace bubblescope::exec {

/// Names, for profilers, the commands that this thread puts on streams while the label exists.
class GpuLabel {
 public:
  GpuLabel(const GpuRuntime& gpu, const char* text) : calls_(gpu.calls()) { calls_.label(text); }
  ~GpuLabel() { calls_.label(nullptr); }
  GpuLabel(const GpuLabel&) = delete;
  GpuLabel& operator=(const GpuLabel&) = delete;

 private:
  const BubblescopeGpu& calls_;
};

}  // namespace bubblescope::exec
