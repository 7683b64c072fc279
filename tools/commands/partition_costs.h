// Partitions as cost files, and what a plan leaves out of the costs that it was made from.
#pragma once

#include <string>
#include <vector>

#include "sim/model/cost_table.h"
#include "tools/commands/partition_report.h"
#include "tools/flags/partition_options.h"

namespace bubblescope::tools {

/// Reports on stderr which costs of a file a plan's period and memory do not count.
void report_uncounted_costs(const CostTable& costs, const PartitionOptions& options);

struct PartitionCosts {
  std::string text;                ///< the file
  std::vector<std::string> notes;  ///< whole sentences about what it assumes or leaves out
};

/// Writes the stages as a --costs file: durations of one micro-batch on one worker, the messages
/// between stages over the slowest bandwidth, static bytes per rank. Stages that were made from a
/// cost file keep everything in it that stages can share: messages, noise, replicas, the time
/// outside the pipeline.
PartitionCosts write_partition_costs(const PartitionPlan& plan, const PartitionOptions& options);

}  // namespace bubblescope::tools
