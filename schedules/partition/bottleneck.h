// Partitions with one worker per stage: the exact minimum bottleneck and torchgpipe's blocks.
#pragma once

#include <optional>
#include <vector>

#include "schedules/partition/partition.h"

namespace bubblescope::schedules {

/// Memory limits of the workers of a pipeline.
struct StageMemory {
  /// [stage]: micro-batches whose activations its worker holds.
  std::vector<std::int32_t> in_flight;
  double parameter_copies = 1;  ///< weights, gradients and optimizer states, in copies
  Bytes limit = 0;              ///< per worker
};

/// The bytes that a stage's worker holds.
Bytes held(const PartitionStage& stage, std::size_t number, const StageMemory& memory);

/// Minimizes the time of the slowest stage over all partitions into `stages` stages that hold at
/// least one layer each and fit in memory. Does not minimize memory. Empty if nothing fits.
/// O(stages * prefixes^2).
std::optional<Partition> min_bottleneck(const LayerGraph& graph, std::int32_t stages,
                                        const std::optional<StageMemory>& memory = {});

/// torchgpipe's block partition of the layers in a row (Barany and Grinberg, "Block partitions of
/// sequences", 2015): fast, but not always optimal. Needs at least as many layers as stages.
Partition make_torchgpipe_partition(const LayerGraph& graph, std::int32_t stages);

}  // namespace bubblescope::schedules
