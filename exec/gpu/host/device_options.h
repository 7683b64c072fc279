// Options of backends that enqueue work on devices.
#pragma once

#include <optional>

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/host/epilogue.h"
#include "exec/gpu/host/place_ranks.h"
#include "exec/training/precision.h"

namespace bubblescope::exec {

struct DeviceOptions {
  Share share = Share::kGreen;
  bool graph = false;  ///< from the third step on, a step is one launch of a graph
  Precision precision = Precision::kFloat32;
  Attention attention = Attention::kSoftmax;
  std::optional<Epilogue> epilogue = {};  ///< empty: fused in bfloat16, separate in float32
  bool activity = false;                  ///< record kernels and copies with a profiler
};

}  // namespace bubblescope::exec
