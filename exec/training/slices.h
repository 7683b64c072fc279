// Sequences that are split into slices, each with ops of its own. Attention looks back: the forward
// of a slice reads the keys and values of earlier slices, and its backward adds to their gradients.
// So slices run forward from first to last, and backward from last to first.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/stage.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// Adjacent positions of every sequence of a micro-batch.
struct Positions {
  std::int32_t begin = 0;
  std::int32_t count = 0;

  std::int32_t end() const { return begin + count; }
};

/// The positions of one of `slices` slices. If they do not divide the sequence evenly, the first
/// slices are longer by one.
Positions positions_of(std::int32_t sequence, std::int32_t slices, std::int32_t slice);

/// Attention state that the slices of a micro-batch share on one stage: per block, the queries,
/// keys and values computed so far for whole sequences, and their accumulated gradients.
struct SliceContext {
  std::vector<Matrix> qkv;
  std::vector<Matrix> qkv_grad;
};

/// A context of zeros.
SliceContext make_context(const TransformerShape& shape);

/// One slice and the context that it shares with the others.
struct Slice {
  Positions positions;
  SliceContext& context;
};

/// The bytes of one slice's share of the context; 0 if sequences are not sliced.
Bytes context_bytes(const TransformerShape& shape, std::int32_t slices, std::int32_t slice);

/// Returns the rows of the given positions in a matrix of whole sequences.
Matrix take_rows(const Matrix& whole, std::int32_t sequence, const Positions& positions);

/// Writes these rows.
void put_rows(Matrix& whole, std::int32_t sequence, const Positions& positions, const Matrix& rows);

}  // namespace bubblescope::exec
