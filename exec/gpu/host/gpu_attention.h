// Attention on a rank's stream: as batched GEMMs and a softmax, or as tiled kernels.
#pragma once

#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/rank_stream.h"
#include "exec/training/layers.h"

namespace bubblescope::exec {

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

class GpuAttention {
 public:
  /// `stream` is not copied.
  GpuAttention(RankStream& stream, Attention kind) : stream_(stream), kind_(kind) {}

  AttentionOutput attend(const GpuMatrix& qkv, const AttentionShape& shape);
  /// Writes the gradients of keys and values for all positions before the end of the queries.
  void pull_back(const AttentionGradOperands& back, const AttentionShape& shape);

 private:
  GpuMatrix make_weights(const GpuMatrix& qkv, const AttentionShape& shape);
  GpuMatrix mix_values(const GpuMatrix& qkv, const GpuMatrix& weights, const AttentionShape& shape);
  void grad_by_gemms(const AttentionGradOperands& back, const AttentionShape& shape);
  AttentionOutput attend_by_tiles(const GpuMatrix& qkv, const AttentionShape& shape);
  void grad_by_tiles(const AttentionGradOperands& back, const AttentionShape& shape);

  RankStream& stream_;
  Attention kind_;
};

}  // namespace bubblescope::exec
