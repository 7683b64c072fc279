// How the layers of a rank are made.
#pragma once

#include <cstdint>

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/host/epilogue.h"

namespace bubblescope {

/// What products are told: how many multiprocessors the rank has, or nothing, for comparison.
enum class Told : std::uint8_t { kMultiprocessors, kNothing };

/// Numbers are stored as it says, but for gradients of weights.
struct LayerStyle {
  BubblescopeNumber number = kBubblescopeFloat32;
  Attention attention = Attention::kSoftmax;
  Told told = Told::kMultiprocessors;
  Epilogue epilogue = Epilogue::kSeparate;
};

}  // namespace bubblescope
