// Options of the layers of a rank.
#pragma once

#include <cstdint>

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/host/epilogue.h"

namespace bubblescope::exec {

/// Whether cuBLASLt gets the rank's number of multiprocessors. Given 16 on an H100, it takes
/// clusters of 8 blocks, which fit a partition badly: its GEMMs take up to twice the time. So it
/// gets none unless a GEMM does not start; kMultiprocessors is for comparison.
enum class SmHint : std::uint8_t { kMultiprocessors, kNothing };

/// `dtype` is the dtype of everything except weight gradients, which are float32.
struct LayerOptions {
  BubblescopeDtype dtype = kBubblescopeFloat32;
  Attention attention = Attention::kSoftmax;
  SmHint sm_hint = SmHint::kNothing;
  Epilogue epilogue = Epilogue::kSeparate;
};

}  // namespace bubblescope::exec
