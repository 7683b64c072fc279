// Allocates results, and enqueues what computes them.
#include "exec/gpu/host/rank_stream.h"

#include <cstddef>

namespace bubblescope::exec {

RankStream::RankStream(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options)
    : gpu_(machine.gpu()),
      dtype_(options.dtype),
      pool_(machine.gpu(), machine.place(rank).device),
      blas_handle_(gpu_.create_blas_handle(machine.place(rank),
                                           options.sm_hint == SmHint::kMultiprocessors)) {}

GpuMatrix RankStream::make(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, dtype_, true};
  matrix.data = pool_.acquire(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

GpuMatrix RankStream::make_floats(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, kBubblescopeFloat32, true};
  matrix.data = pool_.acquire(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

void RankStream::drop(const GpuMatrix& matrix) {
  if (matrix.pooled) pool_.release(matrix.data, static_cast<std::size_t>(matrix.bytes()));
}

GpuMatrix RankStream::take_rows(const GpuMatrix& whole, const SequenceRows& rows) {
  const std::int32_t batch = whole.rows / rows.sequence;
  const std::int32_t count = rows.positions.count;
  const GpuMatrix taken = make(batch * count, whole.columns);
  for (std::int32_t at = 0; at < batch; ++at) {
    const GpuMatrix from = rows_of(whole, at * rows.sequence + rows.positions.begin, count);
    gpu_.copy(rows_of(taken, at * count, count).data, from.data,
              static_cast<std::size_t>(from.bytes()), stream_);
  }
  return taken;
}

void RankStream::clear(const GpuMatrix& matrix) {
  gpu_.clear(matrix.data, static_cast<std::size_t>(matrix.bytes()), stream_);
}

void RankStream::multiply(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                          const GpuMatrix& source) {
  gpu_.multiply(blas_handle_, gemm_of(left, right, target, source), stream_);
}

GpuMatrix RankStream::gemm(const GpuOperand& left, const GpuOperand& right) {
  const GpuMatrix target = make(left.transposed ? left.matrix.columns : left.matrix.rows,
                                right.transposed ? right.matrix.rows : right.matrix.columns);
  gpu_.multiply(blas_handle_, gemm_of(left, right, target), stream_);
  return target;
}

/// One GEMM per sequence, all with the same right operand.
void RankStream::multiply_into(const GpuMatrix& left, const GpuMatrix& right,
                               const GpuMatrix& whole, const SequenceRows& rows) {
  const GpuMatrix first = rows_of(whole, rows.positions.begin, rows.positions.count);
  BubblescopeGemm gemm{};
  gemm.rows = rows.positions.count;
  gemm.columns = whole.columns;
  gemm.k = left.columns;
  gemm.batch = whole.rows / rows.sequence;
  gemm.left = {left.data, left.columns, std::int64_t{rows.positions.count} * left.columns, 0};
  gemm.right = {right.data, right.columns, 0, 0};
  gemm.target = first.data;
  gemm.target_stride = whole.columns;
  gemm.target_step = std::int64_t{rows.sequence} * whole.columns;
  gemm.scale = 1;
  gemm.dtype = left.dtype;
  gemm.target_dtype = whole.dtype;
  gpu_.multiply(blas_handle_, gemm, stream_);
}

void RankStream::multiply(const BubblescopeGemm& gemm) {
  gpu_.multiply(blas_handle_, gemm, stream_);
}

bool RankStream::can_multiply(const BubblescopeGemm& gemm) const {
  return gpu_.can_multiply(blas_handle_, gemm);
}

void RankStream::launch(const GpuMatrix& shape, const KernelArguments& arguments) const {
  gpu_.launch({dtype_, shape.rows, shape.columns, arguments}, stream_);
}

}  // namespace bubblescope::exec
