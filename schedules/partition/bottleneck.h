// Stages of one worker each: the exact least bottleneck, torchgpipe's blocks, Megatron's uneven
// ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/partition/partition.h"

namespace bubblescope {

/// What the workers of a pipeline can hold.
struct StageMemory {
  std::vector<std::int32_t> in_flight;  ///< [stage]: micro-batches whose activations it holds
  double parameter_copies = 1;          ///< weights, gradients, optimizer states
  Bytes limit = 0;                      ///< of one worker
};

/// What a stage's worker holds.
Bytes held(const PartitionStage& stage, std::size_t number, const StageMemory& memory);

/// The least time of the slowest stage, over all ways to cut the model into so many stages that
/// hold at least one layer each and fit in memory; among those, the least memory on the fullest
/// worker is not sought. Empty where nothing fits. O(stages * prefixes^2).
std::optional<Partition> least_bottleneck(const LayerGraph& graph, std::int32_t stages,
                                          const std::optional<StageMemory>& memory = {});

/// torchgpipe's block partition of the layers in a row (Barany and Grinberg, "Block partitions of
/// sequences", 2015): fast, not always the best. At least as many layers as stages.
Partition torchgpipe_blocks(const LayerGraph& graph, std::int32_t stages);

/// Megatron-LM's layer counts.
struct UnevenEnds {
  std::optional<std::int32_t> first = {};  ///< layers of the first stage
  std::optional<std::int32_t> last = {};
  bool counts_embedding = false;  ///< the embedding stands for a layer of the first stage
  bool counts_loss = false;       ///< the loss stands for a layer of the last stage
};

/// Layers per stage. Throws Error, with what would do, where they do not divide evenly.
std::vector<std::int32_t> megatron_counts(std::int32_t layers, std::int32_t stages,
                                          const UnevenEnds& ends);

}  // namespace bubblescope
