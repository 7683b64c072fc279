// How numbers of a training are stored on devices.
#pragma once

#include <cstdint>

#include "exec/gpu/orders.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Sums are made in float32 either way.
enum class Precision : std::uint8_t { kFloat32, kBfloat16 };

inline BubblescopeNumber number_of(Precision precision) {
  return precision == Precision::kBfloat16 ? kBubblescopeBfloat16 : kBubblescopeFloat32;
}

inline Bytes entry_bytes(BubblescopeNumber number) {
  return number == kBubblescopeBfloat16 ? 2 : 4;
}

}  // namespace bubblescope
