// Matrices on devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/gpu/host/precision.h"

namespace bubblescope {

/// A matrix on a device, row by row. It is a name, not an owner: drop() gives pooled ones back.
struct GpuMatrix {
  void* data = nullptr;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  BubblescopeNumber number = kBubblescopeFloat32;
  bool pooled = false;

  std::size_t entries() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  Bytes entry_bytes() const { return bubblescope::entry_bytes(number); }
  Bytes bytes() const { return Bytes{rows} * columns * entry_bytes(); }
};

/// Some neighbouring rows of a matrix, where they lie.
GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count);

/// Some memory of a device or of the host. Not an owner.
struct GpuPiece {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Some neighbouring entries of a matrix, where they lie.
GpuPiece piece_of(const GpuMatrix& matrix, std::size_t begin, std::size_t count);

/// All of them.
inline GpuPiece piece_of(const GpuMatrix& matrix) { return piece_of(matrix, 0, matrix.entries()); }

/// A factor of a product: a matrix as it is, or turned over.
struct GpuFactor {
  GpuMatrix matrix;
  bool transposed = false;
};
inline GpuFactor transposed(const GpuMatrix& matrix) { return {matrix, true}; }

/// target = left * right + source, where that is not empty.
BubblescopeProduct product_of(const GpuFactor& left, const GpuFactor& right,
                              const GpuMatrix& target, const GpuMatrix& source = {});

}  // namespace bubblescope
