// Reports partitions as text, json and csv.
//
//   period    174.498 ms  691.6 ms on one worker, 3.85 times as fast
//
//   stage  layers  replicas  time ms  params MB  held MB
//       0   0..14         3  174.496     102.8   4822.1   node2 … node16
//       1  15..39         1  174.498     450.6    900.2   node17 … node41
#pragma once

#include <string>
#include <vector>

#include "tools/flags/partition_options.h"

namespace bubblescope::tools {

/// A partition with the memory of its workers, per stage.
struct PartitionPlan {
  const LayerGraph& graph;
  schedules::Partition partition;
  std::vector<Bytes> bytes;
};

/// `format`: "text" for people, "json" (docs/partition.md has its keys) or "csv", a row per stage.
std::string write_partition(const PartitionPlan& plan, const std::string& format);

}  // namespace bubblescope::tools
