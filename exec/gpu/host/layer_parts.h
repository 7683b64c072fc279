// Parameters and results of GPU layers that are more than one matrix.
#pragma once

#include <cstdint>

#include "exec/gpu/host/gpu_matrix.h"
#include "exec/training/layers.h"

namespace bubblescope::exec {

/// A range of positions in every sequence, for a matrix with `sequence` rows per sequence.
struct SequenceRows {
  std::int32_t sequence = 1;
  Positions positions;
};

/// Operands of a norm's backward; `grad` is the gradient of its output. `added` is added to the
/// input gradient unless it is empty. The result goes to `target`, or to a pooled matrix if that is
/// empty.
struct NormGradOperands {
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

/// The attention output, and what the backward needs of the weights: all of them, or with flash
/// attention the logarithm of each row's sum.
struct AttentionOutput {
  GpuMatrix weights;
  GpuMatrix mixed;
};

struct AttentionGradOperands {
  const GpuMatrix& qkv;
  const GpuMatrix& weights;
  const GpuMatrix& mixed;
  const GpuMatrix& mixed_grad;
  const GpuMatrix& target;  ///< receives the gradient of `qkv`
  bool adds = false;        ///< to the target's values
};

/// A GEMM and the GELU that follows it.
struct GeluOutput {
  GpuMatrix before;  ///< left * right
  GpuMatrix after;   ///< gelu(before)
};

}  // namespace bubblescope::exec
