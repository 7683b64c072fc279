// What a partition is: which layers run on which stage, and on how many workers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_graph.h"

namespace bubblescope {

struct PartitionStage {
  std::vector<std::int32_t> layers;  ///< of the graph, in the order in which they run
  std::int32_t replicas = 1;         ///< workers that share its micro-batches
  Nanos time = 0;     ///< what it adds per micro-batch, all-reduce and sharing included
  Nanos forward = 0;  ///< of one micro-batch on one worker
  Nanos backward = 0;
  Bytes parameters = 0;
  Bytes activations = 0;  ///< of one micro-batch
  Bytes output = 0;       ///< what goes on from the stages up to this one
};

struct Partition {
  Nanos period = 0;  ///< the time of its slowest stage
  std::vector<PartitionStage> stages;
};

/// The stage of these layers on one worker.
PartitionStage stage_of(const LayerGraph& graph, std::vector<std::int32_t> layers);

/// What goes on from a set of layers, one flag each: what those of them put out that no other of
/// them takes.
Bytes output_of(const LayerGraph& graph, const std::vector<bool>& layers);

/// What the messages behind a stage take per micro-batch, as PipeDream counts them: the activations
/// and then their gradients over the same link. Replicas of the stage that takes them have a link
/// each.
Nanos transfer_time(Bytes output, Bytes bytes_per_second, std::int32_t replicas);

/// With the outputs of its stages.
Partition with_outputs(Partition partition, const LayerGraph& graph);

/// Stages of so many consecutive layers each. The counts add up to the layers.
Partition cut_after(const LayerGraph& graph, const std::vector<std::int32_t>& counts);

}  // namespace bubblescope
