// Parts of matrices.
#include "exec/gpu/gpu_matrix.h"

namespace bubblescope {

GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count) {
  GpuMatrix rows = matrix;
  rows.data =
      static_cast<char*>(matrix.data) + Bytes{begin} * matrix.columns * matrix.entry_bytes();
  rows.rows = count;
  rows.pooled = false;
  return rows;
}

}  // namespace bubblescope
