// Layer layouts: how many layers of each kind are on which stage.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The number of layers of each kind on one stage.
struct StageLayers {
  std::int32_t embeddings = 0;
  std::int32_t transformers = 0;
  std::int32_t predictions = 0;  ///< m
  std::int32_t losses = 0;

  bool operator==(const StageLayers&) const = default;
};

/// [stage]
using LayerLayout = std::vector<StageLayers>;

/// Costs of layers, in millionths of a transformer layer's time. An embedding is a look-up and
/// costs next to nothing; the loss counts as one layer, as in Megatron
/// (--account-for-loss-in-pipeline-split).
struct LayerCosts {
  Millionths embedding = 0;
  Millionths transformer = kWhole;
  Millionths prediction = kWhole;
  Millionths loss = kWhole;
};

/// Returns the total cost of each stage's layers. Throws Error where all are 0.
std::vector<std::int64_t> compute_stage_weights(const LayerLayout& layout, const LayerCosts& costs);

}  // namespace bubblescope::inline sim
