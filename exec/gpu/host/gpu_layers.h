// The layers of a transformer on one rank's stream: what exec/training/layers.h does on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/gpu/host/activation_pool.h"
#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/layer_parts.h"
#include "exec/gpu/host/layer_style.h"
#include "exec/gpu/kernels.h"

namespace bubblescope {

/// Launches for one rank. A matrix that is returned is pooled and has been, or will be, written
/// when the stream comes to it.
class GpuLayers {
 public:
  /// `machine` is not copied.
  GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerStyle& style);

  /// Where the launches that follow go: the rank's compute stream.
  void set_stream(void* stream) { stream_ = stream; }
  BubblescopeNumber number() const { return number_; }
  ActivationPool& pool() { return pool_; }
  const ActivationPool& pool() const { return pool_; }

  GpuMatrix make(std::int32_t rows, std::int32_t columns);
  void drop(const GpuMatrix& matrix);

  /// target = left * right + source; `source` may be empty, or the target.
  void multiply(const GpuFactor& left, const GpuFactor& right, const GpuMatrix& target,
                const GpuMatrix& source = {});
  GpuMatrix product(const GpuFactor& left, const GpuFactor& right);

  /// left * right, which has only those rows, into the rows of a matrix of whole sequences.
  void multiply_into(const GpuMatrix& left, const GpuMatrix& right, const GpuMatrix& whole,
                     const SequenceRows& rows);
  /// A copy of those rows, one sequence's behind the other's.
  GpuMatrix take_rows(const GpuMatrix& whole, const SequenceRows& rows);
  /// Makes everything zero.
  void clear(const GpuMatrix& matrix);

  GpuMatrix embed(const GpuMatrix& embedding, const GpuMatrix& position, const void* tokens,
                  std::int32_t rows);  ///< positions repeat after those that are given
  void embed_grad(const GpuMatrix& grad, const void* tokens, const GpuMatrix& embedding_grad,
                  const GpuMatrix& position_grad);

  GpuMatrix norm(const GpuMatrix& input, const GpuMatrix& gain);
  NormGrad norm_grad(const NormBack& norm);

  Attended attend(const GpuMatrix& qkv, const AttentionShape& shape);
  /// Of keys and values, those before the end of the asking positions are written.
  void attention_grad(const AttentionBack& back, const AttentionShape& shape);

  /// What was before the gelu need not be written where no backward will read it.
  Activated product_gelu(const GpuFactor& left, const GpuFactor& right, bool keeps_before = true);
  /// left * right * gelu'(before).
  GpuMatrix product_gelu_grad(const GpuFactor& left, const GpuFactor& right,
                              const GpuMatrix& before);
  /// What was tried to be fused.
  const std::vector<EpilogueUse>& epilogues() const { return epilogues_; }

  /// In place: logits become probabilities; the mean loss goes to `loss`, a float on the device.
  void cross_entropy(const GpuMatrix& logits, const void* targets, float* loss);
  /// In place: probabilities become the gradient of logits.
  void cross_entropy_grad(const GpuMatrix& probabilities, const void* targets, float scale);

  void add(const GpuMatrix& to, const GpuMatrix& values);  ///< float32

 private:
  GpuMatrix attention_weights(const GpuMatrix& qkv, const AttentionShape& shape);
  GpuMatrix mix_values(const GpuMatrix& qkv, const GpuMatrix& weights, const AttentionShape& shape);
  void grad_by_products(const AttentionBack& back, const AttentionShape& shape);
  Attended attend_by_tiles(const GpuMatrix& qkv, const AttentionShape& shape);
  void grad_by_tiles(const AttentionBack& back, const AttentionShape& shape);
  BubblescopeLaunch order_tiles(Kernel kernel, const AttentionShape& shape) const;
  bool multiply_fused(const BubblescopeProduct& product);
  GpuMatrix make_floats(std::int32_t rows, std::int32_t columns);
  BubblescopeLaunch order(Kernel kernel, const GpuMatrix& shape) const;
  void launch(const BubblescopeLaunch& order) { gpu_.launch(order, stream_); }

  const Gpu& gpu_;
  BubblescopeNumber number_;
  Attention attention_;
  Epilogue epilogue_;
  std::vector<EpilogueUse> epilogues_;
  ActivationPool pool_;
  GpuHandle multiplier_;
  void* stream_ = nullptr;
};

}  // namespace bubblescope
