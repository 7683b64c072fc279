// Sums over layers.
#include "schedules/partition/partition.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bubblescope::schedules {

PartitionStage stage_of(const LayerGraph& graph, std::vector<std::int32_t> layers) {
  PartitionStage stage;
  for (const std::int32_t at : layers) {
    const Layer& layer = graph.layers[static_cast<std::size_t>(at)];
    stage.forward += layer.forward;
    stage.backward += layer.backward;
    stage.parameters += layer.parameters;
    stage.activations += layer.activations;
  }
  stage.time = stage.forward + stage.backward;
  stage.layers = std::move(layers);
  return stage;
}

Bytes sum_outputs(const LayerGraph& graph, const std::vector<bool>& layers) {
  std::vector<bool> taken(layers.size(), false);
  for (std::size_t at = 0; at < layers.size(); ++at)
    if (layers[at])
      for (const std::int32_t from : graph.inputs[at]) taken[static_cast<std::size_t>(from)] = true;
  Bytes output = 0;
  for (std::size_t at = 0; at < layers.size(); ++at)
    if (layers[at] && !taken[at]) output += graph.layers[at].output();
  return output;
}

Nanos compute_transfer_time(Bytes output, Bytes bytes_per_second, std::int32_t replicas) {
  return std::llround(2e9 * static_cast<double>(output) /
                      (static_cast<double>(bytes_per_second) * replicas));
}

Partition with_outputs(Partition partition, const LayerGraph& graph) {
  std::vector<bool> layers(graph.layers.size(), false);
  for (PartitionStage& stage : partition.stages) {
    for (const std::int32_t layer : stage.layers) layers[static_cast<std::size_t>(layer)] = true;
    stage.output = sum_outputs(graph, layers);
  }
  return partition;
}

Partition partition_by_counts(const LayerGraph& graph, const std::vector<std::int32_t>& counts) {
  Partition partition;
  std::int32_t next = 0;
  for (const std::int32_t count : counts) {
    std::vector<std::int32_t> layers;
    for (std::int32_t left = count; left > 0; --left) layers.push_back(next++);
    partition.stages.push_back(stage_of(graph, std::move(layers)));
    partition.period = std::max(partition.period, partition.stages.back().time);
  }
  return with_outputs(std::move(partition), graph);
}

}  // namespace bubblescope::schedules
