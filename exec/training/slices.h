// Sequences cut into slices, each of which ops of its own train. Attention looks back: the forward
// of a slice reads keys and values of those before it, and its backward adds to their gradients, so
// that slices go forward from first to last and backward from last to first.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/stage.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Neighbouring positions of every sequence of a micro-batch.
struct Positions {
  std::int32_t begin = 0;
  std::int32_t count = 0;

  std::int32_t end() const { return begin + count; }
};

/// Of one of `slices` slices. Where they do not divide the sequence, the first ones are longer by
/// one.
Positions positions_of(std::int32_t sequence, std::int32_t slices, std::int32_t slice);

/// What the slices of a micro-batch leave to each other on one stage: per block, queries, keys and
/// values of whole sequences, as far as they were made, and what is known of their gradients.
struct SliceContext {
  std::vector<Matrix> qkv;
  std::vector<Matrix> qkv_grad;
};

/// Everything zero.
SliceContext make_context(const TransformerShape& shape);

/// One slice and what it shares with the others.
struct Slice {
  Positions positions;
  SliceContext& context;
};

/// What one slice's part of a context takes; none where sequences are whole.
Bytes context_bytes(const TransformerShape& shape, std::int32_t slices, std::int32_t slice);

/// The rows of some positions, of a matrix that has those of whole sequences.
Matrix take_rows(const Matrix& whole, std::int32_t sequence, const Positions& positions);

/// Writes them.
void put_rows(Matrix& whole, std::int32_t sequence, const Positions& positions, const Matrix& rows);

}  // namespace bubblescope
