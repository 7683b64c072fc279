// Transformer layers on one rank's stream: the GPU counterpart of exec/training/layers.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "exec/gpu/host/activation_pool.h"
#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/layer_options.h"
#include "exec/gpu/host/layer_parts.h"
#include "exec/gpu/kernels.h"
#include "exec/training/training_identity.h"

namespace bubblescope::exec {

/// Launches the layers of one rank. Every call only enqueues; a returned matrix is pooled and is
/// written when the stream gets there.
class GpuLayers {
 public:
  /// `machine` is not copied.
  GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options);

  /// Sets the stream of the following launches: the rank's compute stream.
  void set_stream(void* stream) { stream_ = stream; }
  BubblescopeDtype dtype() const { return dtype_; }
  ActivationPool& pool() { return pool_; }
  const ActivationPool& pool() const { return pool_; }

  GpuMatrix make(std::int32_t rows, std::int32_t columns);
  void drop(const GpuMatrix& matrix);

  /// target = left * right + source; `source` may be empty, or be the target.
  void multiply(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                const GpuMatrix& source = {});
  GpuMatrix gemm(const GpuOperand& left, const GpuOperand& right);

  /// Writes left * right, which has only the given rows, to these rows of a matrix of whole
  /// sequences.
  void multiply_into(const GpuMatrix& left, const GpuMatrix& right, const GpuMatrix& whole,
                     const SequenceRows& rows);
  /// Copies the given rows of every sequence.
  GpuMatrix take_rows(const GpuMatrix& whole, const SequenceRows& rows);
  /// Sets all entries to zero.
  void clear(const GpuMatrix& matrix);

  GpuMatrix embed(const GpuMatrix& embedding, const GpuMatrix& position, const std::int32_t* tokens,
                  std::int32_t rows);  ///< `position` repeats after its last row
  void embed_grad(const GpuMatrix& grad, const std::int32_t* tokens,
                  const GpuMatrix& embedding_grad, const GpuMatrix& position_grad);

  GpuMatrix norm(const GpuMatrix& input, const GpuMatrix& gain);
  NormGrad norm_grad(const NormGradOperands& norm);

  AttentionOutput attend(const GpuMatrix& qkv, const AttentionShape& shape);
  /// Writes the gradients of keys and values for all positions before the end of the queries.
  void attention_grad(const AttentionGradOperands& back, const AttentionShape& shape);

  /// With keeps_before = false, the input of the GELU is not written: no backward reads it.
  GeluOutput gemm_gelu(const GpuOperand& left, const GpuOperand& right, bool keeps_before = true);
  /// left * right * gelu'(before).
  GpuMatrix gemm_gelu_grad(const GpuOperand& left, const GpuOperand& right,
                           const GpuMatrix& before);
  /// The GEMMs for which fusion was tried.
  std::vector<EpilogueUse> epilogues() const;
  /// The device, library and kernels, on which the last bit of every sum depends.
  const TrainingIdentity& computed_by() const { return computed_by_; }

  /// Replaces logits by probabilities and writes the mean loss to `loss`, a float on the device.
  void cross_entropy(const GpuMatrix& logits, const std::int32_t* targets, float* loss);
  /// Replaces probabilities by the gradient of the logits.
  void cross_entropy_grad(const GpuMatrix& probabilities, const std::int32_t* targets, float scale);

  void add(const GpuMatrix& to, const GpuMatrix& values);  ///< float32

 private:
  GpuMatrix attention_weights(const GpuMatrix& qkv, const AttentionShape& shape);
  GpuMatrix mix_values(const GpuMatrix& qkv, const GpuMatrix& weights, const AttentionShape& shape);
  void grad_by_gemms(const AttentionGradOperands& back, const AttentionShape& shape);
  AttentionOutput attend_by_tiles(const GpuMatrix& qkv, const AttentionShape& shape);
  void grad_by_tiles(const AttentionGradOperands& back, const AttentionShape& shape);
  bool can_fuse(const BubblescopeGemm& gemm);
  bool multiply_fused(const BubblescopeGemm& gemm);
  GpuMatrix make_floats(std::int32_t rows, std::int32_t columns);
  /// Launches a kernel for matrices of this shape.
  void launch(const GpuMatrix& shape, const KernelArguments& arguments) const;

  const GpuRuntime& gpu_;
  BubblescopeDtype dtype_;
  Attention attention_;
  Epilogue epilogue_;
  std::vector<std::pair<EpilogueUse, bool>> epilogues_;  ///< with or without the GELU's input
  ActivationPool pool_;
  GpuHandle blas_handle_;
  TrainingIdentity computed_by_;
  void* stream_ = nullptr;
};

}  // namespace bubblescope::exec
