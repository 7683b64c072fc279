// Options of the layers of a rank.
#pragma once

#include <cstdint>

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/host/epilogue.h"

namespace bubblescope {

/// Whether cuBLASLt is told how many multiprocessors the rank has. kNothing is for comparison.
enum class Told : std::uint8_t { kMultiprocessors, kNothing };

/// `number` is the dtype of everything except weight gradients, which are float32.
struct LayerStyle {
  BubblescopeNumber number = kBubblescopeFloat32;
  Attention attention = Attention::kSoftmax;
  Told told = Told::kMultiprocessors;
  Epilogue epilogue = Epilogue::kSeparate;
};

}  // namespace bubblescope
