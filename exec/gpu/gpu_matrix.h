// Matrices on devices.
#pragma once

#include <cstdint>

#include "exec/gpu/orders.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// A matrix on a device, row by row. It is a name, not an owner: drop() gives pooled ones back.
struct GpuMatrix {
  void* data = nullptr;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  BubblescopeNumber number = kBubblescopeFloat32;
  bool pooled = false;

  Bytes entry_bytes() const { return number == kBubblescopeBfloat16 ? 2 : 4; }
  Bytes bytes() const { return Bytes{rows} * columns * entry_bytes(); }
};

/// Some neighbouring rows of a matrix, where they lie.
GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count);

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
