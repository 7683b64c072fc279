// Sums over layers.
#include "schedules/partition/partition.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

PartitionStage stage_of(const LayerGraph& graph, std::vector<std::int32_t> layers) {
  PartitionStage stage;
  for (const std::int32_t at : layers) {
    const Layer& layer = graph.layers[static_cast<std::size_t>(at)];
    stage.forward += layer.forward;
    stage.backward += layer.backward;
    stage.parameters += layer.parameters;
    stage.activations += layer.activations;
    stage.output = layer.output();
  }
  stage.time = stage.forward + stage.backward;
  stage.layers = std::move(layers);
  return stage;
}

Partition cut_after(const LayerGraph& graph, const std::vector<std::int32_t>& counts) {
  Partition partition;
  std::int32_t next = 0;
  for (const std::int32_t count : counts) {
    std::vector<std::int32_t> layers;
    for (std::int32_t left = count; left > 0; --left) layers.push_back(next++);
    partition.stages.push_back(stage_of(graph, std::move(layers)));
    partition.period = std::max(partition.period, partition.stages.back().time);
  }
  return partition;
}

}  // namespace bubblescope
