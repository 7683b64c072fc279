// Converts a training's precision to the dtype of GPU requests.
#pragma once

#include "exec/gpu/requests.h"
#include "exec/training/precision.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

inline BubblescopeDtype dtype_of(Precision precision) {
  return precision == Precision::kBfloat16 ? kBubblescopeBfloat16 : kBubblescopeFloat32;
}

inline Bytes entry_bytes(BubblescopeDtype dtype) { return dtype == kBubblescopeBfloat16 ? 2 : 4; }

}  // namespace bubblescope::exec
