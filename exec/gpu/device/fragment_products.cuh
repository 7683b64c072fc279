// Products of a warp's rows with tiles. A warp has kPieces x 16 rows, and reads a fragment of a
// tile once for kPieces products.
#pragma once

#include "exec/gpu/device/fragment_sums.cuh"

namespace bubblescope::exec {

/// The rows of a warp as left operands, read once and kept in registers.
template <int kPieces, int kWidth, bool kKeeps>
struct LeftRows {
  template <int kRows>
  __device__ LeftRows(const FragmentTile<kRows, kWidth>& tile, int row) {
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
    for (int part = 0; part < kWidth / kFragmentRows; ++part)
      load_left(parts[piece][part], tile, row + piece * kFragmentRows, part * kFragmentRows);
  }
  __device__ void load(std::uint32_t (&to)[4], int piece, int column) const {
    BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) to[each] = parts[piece][column / kFragmentRows][each];
  }

  std::uint32_t parts[kPieces][kWidth / kFragmentRows][4];
};

/// The same, read from shared memory for every product.
template <int kPieces, int kWidth>
struct LeftRows<kPieces, kWidth, false> {
  template <int kRows>
  __device__ LeftRows(const FragmentTile<kRows, kWidth>& tile, int row)
      : rows(reinterpret_cast<const FragmentTile<kPieces * kFragmentRows, kWidth>&>(
            tile.rows[row])) {}
  __device__ void load(std::uint32_t (&to)[4], int piece, int column) const {
    load_left(to, rows, piece * kFragmentRows, column);
  }

  const FragmentTile<kPieces * kFragmentRows, kWidth>& rows;
};

/// Returns left * transpose of some rows of the tile, which are the columns of the sums.
template <int kStep, int kPieces, int kWidth, bool kKeeps, int kRows>
__device__ FragmentSums<kPieces, kStep> multiply_by_rows(
    const LeftRows<kPieces, kWidth, kKeeps>& left, const FragmentTile<kRows, kWidth>& tile,
    int first_row) {
  FragmentSums<kPieces, kStep> sums;
  BUBBLESCOPE_UNROLL
  for (int column = 0; column < kWidth; column += kFragmentRows) {
    std::uint32_t lefts[kPieces][4];
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) left.load(lefts[piece], piece, column);
    BUBBLESCOPE_UNROLL
    for (int row = 0; row < kStep; row += kFragmentRows) {
      std::uint32_t first[2], second[2];
      load_right_rows(first, second, tile, first_row + row, column);
      BUBBLESCOPE_UNROLL
      for (int piece = 0; piece < kPieces; ++piece) {
        multiply_fragments(sums.of[piece][row / kFragmentColumns], lefts[piece], first);
        multiply_fragments(sums.of[piece][row / kFragmentColumns + 1], lefts[piece], second);
      }
    }
  }
  return sums;
}

/// sums += left * some rows of the tile. The left operand are sums of another product, rounded.
template <int kPieces, int kStep, int kRows, int kWidth>
__device__ void multiply_by_columns(FragmentSums<kPieces, kWidth>& sums,
                                    const FragmentSums<kPieces, kStep>& left,
                                    const FragmentTile<kRows, kWidth>& tile, int first_row) {
  BUBBLESCOPE_UNROLL
  for (int row = 0; row < kStep; row += kFragmentRows) {
    std::uint32_t rounded[kPieces][4];
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      const auto& part = left.of[piece][row / kFragmentColumns + each / 2];
      rounded[piece][each] = pack_halves(part[each % 2 * 2], part[each % 2 * 2 + 1]);
    }
    BUBBLESCOPE_UNROLL
    for (int column = 0; column < kWidth; column += kFragmentRows) {
      std::uint32_t first[2], second[2];
      load_right_columns(first, second, tile, first_row + row, column);
      BUBBLESCOPE_UNROLL
      for (int piece = 0; piece < kPieces; ++piece) {
        multiply_fragments(sums.of[piece][column / kFragmentColumns], rounded[piece], first);
        multiply_fragments(sums.of[piece][column / kFragmentColumns + 1], rounded[piece], second);
      }
    }
  }
}

}  // namespace bubblescope::exec
