// Finds the readers of every stage.
#include "sim/ir/stage_graph.h"

#include <utility>

namespace bubblescope::inline sim {

StageGraph::StageGraph(StageLists inputs) : inputs_(std::move(inputs)), readers_(inputs_.size()) {
  const auto stages = static_cast<std::int32_t>(inputs_.size());
  for (std::int32_t stage = 0; stage < stages; ++stage)
    for (const std::int32_t input : inputs_[static_cast<std::size_t>(stage)])
      if (input >= 0 && input < stages) readers_[static_cast<std::size_t>(input)].push_back(stage);
}

}  // namespace bubblescope::inline sim
