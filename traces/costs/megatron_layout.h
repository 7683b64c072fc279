// Megatron's --pipeline-model-parallel-layout: which layers are on which stage.
//
//   Et*3|(tt|)*29,m|L     32 stages: E and 3 t, 29 times 2 t, m, L
//
// E is the embedding, t a transformer layer, m a multi-token prediction layer, L the loss with the
// output layer. | ends a stage, x*n and (...)*n repeat, commas and blanks mean nothing. Stages are
// in the order of the model: stage s is on pipeline rank s mod p, unless a schedule places it
// elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct StageLayers {
  std::int32_t embeddings = 0;
  std::int32_t transformers = 0;
  std::int32_t predictions = 0;  ///< m
  std::int32_t losses = 0;

  bool operator==(const StageLayers&) const = default;
};

/// [stage]
using LayerLayout = std::vector<StageLayers>;

/// Throws Error with the column of the first letter that is wrong, and for what Megatron refuses:
/// the first layer must be the only E, the last the only L, and every m must follow every t.
LayerLayout parse_layout(std::string_view text);

/// Writes a layout in its shortest form, without commas: "Et*3|(tt|)*29m|L".
std::string to_string(const LayerLayout& layout);

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

}  // namespace bubblescope::traces
