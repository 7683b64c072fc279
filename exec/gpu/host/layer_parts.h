// What layers on GPUs are given and return where it is more than matrices.
#pragma once

#include <cstdint>

#include "exec/gpu/host/gpu_matrix.h"
#include "exec/training/layers.h"

namespace bubblescope {

/// Some positions of every sequence: the same rows of each `sequence` rows of a matrix.
struct SequenceRows {
  std::int32_t sequence = 1;
  Positions positions;
};

/// What a norm made of `input` with `gain`, of which `grad` is the gradient. `added` goes on top
/// of the input's gradient unless it is empty; that is put into `target`, or a pooled matrix.
struct NormBack {
  const GpuMatrix& input;
  const GpuMatrix& gain;
  const GpuMatrix& grad;
  const GpuMatrix& added;
  GpuMatrix target = {};
};

struct NormGrad {
  GpuMatrix input;
  GpuMatrix gain;  ///< float32, one row
};

/// What the asking positions mix, and what of their weights stays for the backward: all, or of
/// flash attention the logarithm of a row's sum.
struct Attended {
  GpuMatrix weights;
  GpuMatrix mixed;
};

struct AttentionBack {
  const GpuMatrix& qkv;
  const GpuMatrix& weights;
  const GpuMatrix& mixed;
  const GpuMatrix& mixed_grad;
  const GpuMatrix& target;  ///< the gradient of queries, keys and values, as `qkv`
  bool adds = false;        ///< to what is there
};

/// Of a product and the GELU behind it.
struct Activated {
  GpuMatrix before;  ///< left * right
  GpuMatrix after;   ///< gelu of that
};

}  // namespace bubblescope
