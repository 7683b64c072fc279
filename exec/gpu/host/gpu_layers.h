// Transformer layers on one rank's stream: the GPU counterpart of exec/training/layers.h.
#pragma once

#include <cstdint>

#include "exec/gpu/host/gpu_attention.h"
#include "exec/gpu/host/gpu_gelu.h"
#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/layer_options.h"
#include "exec/gpu/host/rank_stream.h"
#include "exec/training/training_identity.h"

namespace bubblescope::exec {

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

/// The layers of one rank. Every call only enqueues; a returned matrix is pooled and is written
/// when the stream gets there.
struct GpuLayers {
  /// `machine` is not copied.
  GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options);
  GpuLayers(const GpuLayers&) = delete;
  GpuLayers& operator=(const GpuLayers&) = delete;

  GpuMatrix embed(const GpuMatrix& embedding, const GpuMatrix& position, const std::int32_t* tokens,
                  std::int32_t rows);  ///< `position` repeats after its last row
  void embed_grad(const GpuMatrix& grad, const std::int32_t* tokens,
                  const GpuMatrix& embedding_grad, const GpuMatrix& position_grad);

  GpuMatrix norm(const GpuMatrix& input, const GpuMatrix& gain);
  NormGrad norm_grad(const NormGradOperands& norm);

  /// Replaces logits by probabilities and writes the mean loss to `loss`, a float on the device.
  void cross_entropy(const GpuMatrix& logits, const std::int32_t* targets, float* loss);
  /// Replaces probabilities by the gradient of the logits.
  void cross_entropy_grad(const GpuMatrix& probabilities, const std::int32_t* targets, float scale);

  void add(const GpuMatrix& to, const GpuMatrix& values);  ///< float32

  RankStream stream;
  GpuAttention attention;
  GpuGelu gelu;
  /// The device, library and kernels, on which the last bit of every sum depends.
  TrainingIdentity computed_by;
};

}  // namespace bubblescope::exec
