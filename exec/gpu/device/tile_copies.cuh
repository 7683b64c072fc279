// Copies between global memory and tiles in shared memory.
#pragma once

#include "exec/gpu/device/fragment_tiles.cuh"

namespace bubblescope::exec {

/// Rows of one head in global memory.
template <class Number>
struct HeadRows {
  Number* first;
  std::int64_t step;  ///< between rows
  int count;
  int width;
  bool is_aligned;  ///< rows begin at multiples of 16 bytes
};

/// A thread's part of the copies between tiles of kRows rows and memory: one vector of columns in
/// rows at a fixed distance. Tiles are copied in order, by all threads of the block.
template <int kThreads, int kRows, int kWidth, class Number>
class TileCopies {
 public:
  __device__ explicit TileCopies(const HeadRows<Number>& rows)
      : entry_(rows.first + row() * rows.step + column()),
        step_(kDistance * rows.step),
        count_(row() < kDistance && column() < rows.width ? rows.count - row() : 0),
        columns_(rows.width - column()),
        is_aligned_(rows.is_aligned) {}

  /// Begins to fill a tile with the rows from `first` on, which follow those of the call before.
  /// Where there are none, the tile gets zeros.
  __device__ void begin(FragmentTile<kRows, kWidth>& tile, int first) {
    if (is_idle()) return;
    const int count = count_ - first;
    if (is_aligned_) {
      BUBBLESCOPE_UNROLL
      for (int pass = 0; pass < kRows; pass += kDistance, entry_ += step_)
        begin_copy(&tile.rows[row() + pass][column()], entry_, pass < count);
      return;
    }
    BUBBLESCOPE_ROLLED
    for (int pass = 0; pass < kRows; pass += kDistance, entry_ += step_) BUBBLESCOPE_ROLLED
    for (int each = 0; each < kVector; ++each)
      tile.rows[row() + pass][column() + each] =
          pass < count && each < columns_ ? entry_[each] : Bfloat16{0};
  }

  /// Writes the rows of the first tile to memory, after all threads have filled it.
  __device__ void store(const FragmentTile<kRows, kWidth>& tile) const {
    if (is_idle()) return;
    Number* entry = entry_;
    BUBBLESCOPE_UNROLL
    for (int pass = 0; pass < kRows; pass += kDistance, entry += step_) {
      const Bfloat16* const from = &tile.rows[row() + pass][column()];
      if (pass >= count_) continue;
      if (is_aligned_)
        store_chunk(entry, load_chunk<kVector>(from));
      else
        store_numbers(entry, from);
    }
  }

 private:
  static constexpr int kVectors = kWidth / kVector;
  static constexpr int kDistance = kThreads / kVectors < kRows ? kThreads / kVectors : kRows;
  static_assert(kThreads % kVectors == 0 && kRows % kDistance == 0, "threads share rows evenly");

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kVectors; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kVectors * kVector; }
  __device__ static bool is_idle() { return kDistance * kVectors < kThreads && row() >= kDistance; }

  __device__ void store_numbers(Number* to, const Bfloat16* from) const {
    BUBBLESCOPE_ROLLED
    for (int each = 0; each < kVector && each < columns_; ++each) to[each] = from[each];
  }

  Number* entry_;
  std::int64_t step_;
  int count_;    ///< of rows from the thread's first on
  int columns_;  ///< of the head from the thread's first on
  bool is_aligned_;
};

/// Begins to fill a tile with the first of some rows.
template <int kThreads, int kRows, int kWidth, class Number>
__device__ void begin_tile(FragmentTile<kRows, kWidth>& tile, const HeadRows<Number>& from) {
  TileCopies<kThreads, kRows, kWidth, Number>(from).begin(tile, 0);
}

/// Writes a tile to the first of some rows, after all threads have filled it.
template <int kThreads, int kRows, int kWidth>
__device__ void store_tile(const HeadRows<Bfloat16>& to, const FragmentTile<kRows, kWidth>& tile) {
  TileCopies<kThreads, kRows, kWidth, Bfloat16>(to).store(tile);
}

/// Waits until the tiles that were begun are full, for all threads.
__device__ inline void await_tiles() {
  await_copies();
  __syncthreads();
}

}  // namespace bubblescope::exec
