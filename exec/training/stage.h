// The weights of one stage of a transformer, and how they begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/precision.h"

namespace bubblescope {

struct TransformerShape {
  std::int32_t blocks_per_stage = 1;
  std::int32_t width = 32;
  std::int32_t heads = 2;  ///< must divide the width
  std::int32_t vocabulary = 61;
  std::int32_t sequence = 16;
  std::int32_t batch = 1;                     ///< sequences per micro-batch
  Precision precision = Precision::kFloat32;  ///< of activations, their gradients, weights to read

  std::int32_t rows() const { return batch * sequence; }
  std::int32_t inner() const { return 4 * width; }  ///< width of the MLP
};

/// A stage's weights: named matrices in a fixed order.
struct Stage {
  TransformerShape shape;
  bool first = false;
  bool last = false;
  std::vector<std::string> names;
  std::vector<Matrix> weights;
};

/// What must be known to make a stage's initial weights.
struct StagePlan {
  TransformerShape shape;
  std::int32_t stage = 0;
  std::int32_t stages = 1;
  std::uint64_t seed = 1;
};

/// The same plan gives the same weights, bit for bit.
Stage make_stage(const StagePlan& plan);

/// With the weights as products read them.
Stage as_read(const Stage& masters);

/// Zero matrices in the shape of the weights.
std::vector<Matrix> zeros_like(const std::vector<Matrix>& weights);

// The order of a stage's weights: those of the embedding on the first stage, those of every block,
// those of the head on the last.
namespace weight_order {
enum FirstWeight : std::size_t { kEmbedding, kPosition, kFirstWeights };
enum BlockWeight : std::size_t { kGain, kQkv, kOut, kMiddleGain, kUp, kDown, kBlockWeights };
enum LastWeight : std::size_t { kHeadGain, kHead };
}  // namespace weight_order

/// Where the weights of a block begin.
std::size_t block_begin(const Stage& stage, std::size_t block);

/// Where the weights of the last stage's head begin.
std::size_t head_begin(const Stage& stage);

}  // namespace bubblescope
