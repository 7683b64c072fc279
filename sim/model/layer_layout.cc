// Sums up the costs of each stage's layers.
#include "sim/model/layer_layout.h"

#include <numeric>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

std::vector<std::int64_t> compute_stage_weights(const LayerLayout& layout,
                                                const LayerCosts& costs) {
  std::vector<std::int64_t> weights;
  for (const StageLayers& stage : layout)
    weights.push_back(stage.embeddings * costs.embedding + stage.transformers * costs.transformer +
                      stage.predictions * costs.prediction + stage.losses * costs.loss);
  if (std::accumulate(weights.begin(), weights.end(), std::int64_t{0}) == 0)
    throw Error("`layout` has no layer that costs anything; give `layout_costs` E,t,m,L");
  return weights;
}

}  // namespace bubblescope::inline sim
