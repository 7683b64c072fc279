// The layers of a stage that full recomputation covers, by the methods of Megatron-LM.
//
//   a stage of 5 layers, number 2
//     uniform   [0 1] [2 3] [4]   saves the inputs of 0, 2 and 4, and recomputes a group at a time
//     block     [0] [1] 2 3 4     saves the inputs of 0 and 1, and all that 2, 3 and 4 need
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

enum class RecomputeMethod : std::uint8_t {
  kUniform,  ///< all layers of a stage, in groups
  kBlock,    ///< the first layers of every stage, one by one
};

inline constexpr std::array<Named<RecomputeMethod>, 2> kRecomputeMethods{{
    {RecomputeMethod::kUniform, "uniform"},
    {RecomputeMethod::kBlock, "block"},
}};

/// The default saves the input of every layer. A stage with fewer layers than `number` counts as
/// one group, or is recomputed whole.
struct RecomputedLayers {
  RecomputeMethod method = RecomputeMethod::kUniform;
  std::int64_t number = 1;  ///< layers per group (uniform) or per stage (block)

  /// How many of a stage's layers are recomputed. They come first.
  std::int64_t covered(std::int64_t layers) const {
    return method == RecomputeMethod::kBlock ? std::min(number, layers) : layers;
  }
  /// How many of their inputs are saved.
  std::int64_t saved_inputs(std::int64_t layers) const {
    return method == RecomputeMethod::kBlock ? covered(layers) : (layers + number - 1) / number;
  }
  /// How many layers a backward holds whole beside what the stage has saved. Where B is whole,
  /// layers after a block have released as much when the first one of it is recomputed; where it
  /// is split, what I keeps for W is more.
  std::int64_t held_again(std::int64_t layers) const {
    if (method == RecomputeMethod::kUniform) return std::min(number, layers);
    return layers > 0 && number >= layers ? 1 : 0;
  }
  bool operator==(const RecomputedLayers&) const = default;
};

/// Returns a text such as "block 4"; empty for the default.
inline std::string to_text(const RecomputedLayers& layers) {
  if (layers == RecomputedLayers{}) return "";
  return name_of(kRecomputeMethods, layers.method) + " " + std::to_string(layers.number);
}

}  // namespace bubblescope::inline sim
