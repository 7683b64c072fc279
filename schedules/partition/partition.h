// A partition: which layers run on which stage, and on how many workers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_graph.h"

namespace bubblescope::schedules {

struct PartitionStage {
  std::vector<std::int32_t> layers;  ///< indices into the graph, in execution order
  std::int32_t replicas = 1;         ///< workers that share its micro-batches
  Nanos time = 0;                    ///< per micro-batch, including all-reduce and replication
  Nanos forward = 0;                 ///< one micro-batch on one worker
  Nanos backward = 0;
  Bytes parameters = 0;
  Bytes activations = 0;  ///< per micro-batch
  Bytes output = 0;       ///< bytes sent on from the stages up to this one
};

struct Partition {
  Nanos period = 0;  ///< the time of its slowest stage
  std::vector<PartitionStage> stages;
};

/// Returns the stage of these layers on one worker.
PartitionStage stage_of(const LayerGraph& graph, std::vector<std::int32_t> layers);

/// The bytes sent on from a set of layers, one flag each: the outputs that no other layer of the
/// set takes.
Bytes sum_outputs(const LayerGraph& graph, const std::vector<bool>& layers);

/// The message time after a stage per micro-batch, as PipeDream counts it: the activations and
/// then their gradients over the same link. Each replica of the receiving stage has its own link.
Nanos compute_transfer_time(Bytes output, Bytes bytes_per_second, std::int32_t replicas);

/// Fills in the outputs of the stages.
Partition with_outputs(Partition partition, const LayerGraph& graph);

/// A partition into stages of consecutive layers. The counts must add up to the number of layers.
Partition partition_by_counts(const LayerGraph& graph, const std::vector<std::int32_t>& counts);

}  // namespace bubblescope::schedules
