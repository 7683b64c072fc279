// Converts a training's precision to the dtype of GPU requests.
#pragma once

#include "exec/gpu/orders.h"
#include "exec/training/precision.h"
#include "sim/ir/units.h"

namespace bubblescope {

inline BubblescopeNumber number_of(Precision precision) {
  return precision == Precision::kBfloat16 ? kBubblescopeBfloat16 : kBubblescopeFloat32;
}

inline Bytes entry_bytes(BubblescopeNumber number) {
  return number == kBubblescopeBfloat16 ? 2 : 4;
}

}  // namespace bubblescope
