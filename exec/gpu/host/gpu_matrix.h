// Matrices on devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/gpu/host/precision.h"

namespace bubblescope::exec {

/// A row-major matrix on a device. It does not own its memory: drop() returns pooled memory.
struct GpuMatrix {
  void* data = nullptr;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  BubblescopeDtype dtype = kBubblescopeFloat32;
  bool pooled = false;

  std::size_t entries() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  float* floats() const { return static_cast<float*>(data); }  ///< of a float32 matrix
  Bytes entry_bytes() const { return bubblescope::exec::entry_bytes(dtype); }
  Bytes bytes() const { return Bytes{rows} * columns * entry_bytes(); }
};

/// Returns a view of adjacent rows of a matrix.
GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count);

/// A range of device or host memory; not an owner.
struct GpuBuffer {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Returns the memory of adjacent entries of a matrix.
GpuBuffer buffer_of(const GpuMatrix& matrix, std::size_t begin, std::size_t count);

/// Returns the memory of the whole matrix.
inline GpuBuffer buffer_of(const GpuMatrix& matrix) {
  return buffer_of(matrix, 0, matrix.entries());
}

/// An operand of a GEMM: a matrix, or its transpose.
struct GpuOperand {
  GpuMatrix matrix;
  bool transposed = false;
};
inline GpuOperand transposed(const GpuMatrix& matrix) { return {matrix, true}; }

/// Describes target = left * right, plus `source` unless that is empty.
BubblescopeGemm gemm_of(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                        const GpuMatrix& source = {});

}  // namespace bubblescope::exec
