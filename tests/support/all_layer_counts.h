// Every assignment of layers to stages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/balance_layers.h"

namespace bubblescope::tests {

inline std::vector<LayerCounts> list_layer_counts(std::int64_t layers, std::size_t stages) {
  if (stages == 1) return {{layers}};
  std::vector<LayerCounts> all;
  for (std::int64_t first = 0; first <= layers; ++first)
    for (const LayerCounts& rest : list_layer_counts(layers - first, stages - 1)) {
      all.push_back({first});
      all.back().insert(all.back().end(), rest.begin(), rest.end());
    }
  return all;
}

}  // namespace bubblescope::tests
