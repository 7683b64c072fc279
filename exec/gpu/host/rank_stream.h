// One rank's stream on a device: GEMMs, kernels and copies, and pooled memory for their results.
#pragma once

#include <cstdint>

#include "exec/gpu/host/activation_pool.h"
#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/layer_options.h"
#include "exec/gpu/kernels.h"
#include "exec/training/layers.h"

namespace bubblescope::exec {

/// A range of positions in every sequence, for a matrix with `sequence` rows per sequence.
struct SequenceRows {
  std::int32_t sequence = 1;
  Positions positions;
};

/// Every call only enqueues; a returned matrix is pooled and is written when the stream gets there.
class RankStream {
 public:
  /// `machine` is not copied.
  RankStream(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options);

  /// Sets the stream of what follows: the rank's compute stream.
  void set(void* stream) { stream_ = stream; }
  BubblescopeDtype dtype() const { return dtype_; }
  ActivationPool& pool() { return pool_; }
  const ActivationPool& pool() const { return pool_; }
  std::int64_t blas_version() const { return gpu_.blas_version(blas_handle_); }

  GpuMatrix make(std::int32_t rows, std::int32_t columns);
  GpuMatrix make_floats(std::int32_t rows, std::int32_t columns);
  void drop(const GpuMatrix& matrix);

  /// Copies the given rows of every sequence.
  GpuMatrix take_rows(const GpuMatrix& whole, const SequenceRows& rows);
  /// Sets all entries to zero.
  void clear(const GpuMatrix& matrix);

  /// target = left * right + source; `source` may be empty, or be the target.
  void multiply(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                const GpuMatrix& source = {});
  GpuMatrix gemm(const GpuOperand& left, const GpuOperand& right);
  /// Writes left * right, which has only the given rows, to these rows of a matrix of whole
  /// sequences.
  void multiply_into(const GpuMatrix& left, const GpuMatrix& right, const GpuMatrix& whole,
                     const SequenceRows& rows);
  void multiply(const BubblescopeGemm& gemm);
  /// Whether the library supports a GEMM with its epilogue.
  bool can_multiply(const BubblescopeGemm& gemm) const;

  /// Launches a kernel for matrices of this shape.
  void launch(const GpuMatrix& shape, const KernelArguments& arguments) const;

 private:
  const GpuRuntime& gpu_;
  BubblescopeDtype dtype_;
  ActivationPool pool_;
  GpuHandle blas_handle_;
  void* stream_ = nullptr;
};

}  // namespace bubblescope::exec
