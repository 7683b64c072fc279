// Assigns identical layers to stages.
#include "sim/model/parallelism.h"

#include <algorithm>

namespace bubblescope::inline sim {

std::vector<std::int64_t> split_layers(std::int64_t layers, std::int32_t stages,
                                       const TableLayers& tables) {
  const auto last = static_cast<std::size_t>(stages - 1);
  std::vector<double> load(last + 1, 0);
  load[0] += tables.embedding_layers;
  load[last] += tables.head_layers;
  std::vector<std::int64_t> count(last + 1, 0);
  // Adds one layer at a time to the least loaded stage. Ties go to the middle, because the ends
  // also hold the tables, and there to the last stage, because earlier ones hold the activations of
  // more micro-batches. No other split has a smaller maximum load.
  const auto rank_of = [&](std::size_t stage) {
    return load[stage] + (stage == 0 || stage == last ? 1e-6 : 0);
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::size_t least = 0;
    for (std::size_t stage = 1; stage <= last; ++stage)
      if (rank_of(stage) <= rank_of(least)) least = stage;
    ++count[least];
    load[least] += 1;
  }
  std::vector<std::int64_t> first_layer{0};
  for (const std::int64_t held : count) first_layer.push_back(first_layer.back() + held);
  return first_layer;
}

}  // namespace bubblescope::inline sim
