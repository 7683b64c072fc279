// Reports partitions as text, json and csv.
//
//   period    174.498 ms  691.6 ms on one worker, 3.85 times as fast
//
//   stage  layers  replicas  time ms  params MB  held MB
//       0   0..14         3  174.496     102.8   4822.1   node2 … node16
//       1  15..39         1  174.498     450.6    900.2   node17 … node41
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/layer_layout.h"
#include "tools/flags/output_format.h"
#include "tools/flags/partition_options.h"

namespace bubblescope::tools {

/// A partition with the memory of its workers, per stage.
struct PartitionPlan {
  const LayerGraph& graph;
  schedules::Partition partition;
  std::vector<Bytes> bytes;
  std::optional<LayerLayout> layout = {};  ///< if the kinds of the layers are known
};

/// Returns the kinds of layers on every stage. Throws Error where the profile has another number of
/// layers, or stages have replicas or layers out of order, which layouts cannot say.
LayerLayout find_layout(const PartitionPlan& plan, const StageLayers& kinds);

/// `format`: "text" for people, "json" (docs/partition.md has its keys), "csv", a row per stage, or
/// what "megatron" and "torchtitan" take, which need the layout.
std::string write_partition(const PartitionPlan& plan, OutputFormat format);

}  // namespace bubblescope::tools
