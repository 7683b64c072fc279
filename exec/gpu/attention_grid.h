// How attention is made on GPUs, and what its kernels are told.
#pragma once

#include <cstdint>

#include "exec/gpu/orders.h"

namespace bubblescope {

enum class Attention : std::uint8_t {
  kSoftmax,  ///< two batched products and a softmax, whose rows stay for the backward
  kFlash,    ///< by tiles: a row leaves one number, from which the backward makes it again
};

inline constexpr int kMostHeadWidth = 128;
inline constexpr int kAttentionWarps = 8;  ///< of a block; a row each

using AttentionGrid = BubblescopeAttention;

/// Blocks for a row each of all heads.
inline std::int64_t attention_blocks(const AttentionGrid& grid, std::int32_t rows) {
  return std::int64_t{grid.batch} * grid.heads * ((rows + kAttentionWarps - 1) / kAttentionWarps);
}

}  // namespace bubblescope
