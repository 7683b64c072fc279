// Finds work beside the ops that no op contains, which would count as idle time:
//
//   |0F0| |dw| |0B0|        a weight gradient whose name is not that of an op
//   |1F0| |1B0| |dw|        the same while another rank still runs the step
#pragma once

#include <optional>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

struct StrayWork {
  std::optional<std::string> fault = {};  ///< on threads that run ops
  std::optional<std::string> doubt = {};  ///< on others, by slices that state a micro-batch
};

/// Names the slices that take over 1 % of the pipeline's time beside the ops of their rank, from
/// the first op of a step to its last on all ranks of the file. Messages, waiting and the known
/// work around ops do not count, nor do names that also occur before or after whole steps, unless
/// one lies between the ops of its rank or states a micro-batch. The ops have their steps.
StrayWork describe_stray_work(const ObservedTrace& trace);

}  // namespace bubblescope::traces
