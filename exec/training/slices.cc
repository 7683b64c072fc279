// Slices sequences.
#include "exec/training/slices.h"

#include <algorithm>

namespace bubblescope::exec {

Positions positions_of(std::int32_t sequence, std::int32_t slices, std::int32_t slice) {
  const std::int32_t length = sequence / slices;
  const std::int32_t longer = sequence % slices;
  return {slice * length + std::min(slice, longer), length + (slice < longer ? 1 : 0)};
}

SliceContext make_context(const TransformerShape& shape) {
  const std::vector<Matrix> blocks(static_cast<std::size_t>(shape.blocks_per_stage),
                                   Matrix(shape.rows(), 3 * shape.width));
  return {blocks, blocks};
}

Bytes context_bytes(const TransformerShape& shape, std::int32_t slices, std::int32_t slice) {
  if (slices == 1) return 0;
  const Bytes rows = Bytes{shape.batch} * positions_of(shape.sequence, slices, slice).count;
  return rows * 3 * shape.width * shape.blocks_per_stage * Bytes{sizeof(float)};
}

Matrix take_rows(const Matrix& whole, std::int32_t sequence, const Positions& positions) {
  const std::int32_t batch = whole.rows / sequence;
  Matrix rows(batch * positions.count, whole.columns);
  for (std::int32_t at = 0; at < batch; ++at) {
    const float* const from = whole.row(at * sequence + positions.begin);
    std::copy(from, from + std::ptrdiff_t{positions.count} * whole.columns,
              rows.row(at * positions.count));
  }
  return rows;
}

void put_rows(Matrix& whole, std::int32_t sequence, const Positions& positions,
              const Matrix& rows) {
  const std::int32_t batch = whole.rows / sequence;
  for (std::int32_t at = 0; at < batch; ++at) {
    const float* const from = rows.row(at * positions.count);
    std::copy(from, from + std::ptrdiff_t{positions.count} * whole.columns,
              whole.row(at * sequence + positions.begin));
  }
}

}  // namespace bubblescope::exec
