// The attention variants on GPUs, and the parameters of their kernels.
#pragma once

#include <cstdint>

#include "exec/gpu/requests.h"

namespace bubblescope::exec {

enum class Attention : std::uint8_t {
  kSoftmax,  ///< two batched GEMMs and a softmax, whose rows are kept for the backward
  kFlash,  ///< tiled (flash attention): keeps one value per row, from which the backward recomputes
           ///< it
};

inline constexpr int kMaxHeadWidth = 128;
inline constexpr int kAttentionWarps = 8;  ///< per block; one row each

using AttentionGrid = BubblescopeAttention;

/// The number of blocks if every warp takes one row of one head.
inline std::int64_t attention_blocks(const AttentionGrid& grid, std::int32_t rows) {
  return std::int64_t{grid.batch} * grid.heads * ((rows + kAttentionWarps - 1) / kAttentionWarps);
}

/// The same on tensor cores, where every block takes `block_rows` rows of one head.
inline std::int64_t fragment_blocks(const AttentionGrid& grid, std::int32_t rows,
                                    std::int32_t block_rows) {
  return std::int64_t{grid.batch} * grid.heads * ((rows + block_rows - 1) / block_rows);
}

}  // namespace bubblescope::exec
