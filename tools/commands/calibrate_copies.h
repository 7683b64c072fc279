// Calibrates copies: the time to move saved activations to another memory and back.
#pragma once

#include <vector>

#include "exec/calibration/contention_costs.h"
#include "exec/runtime/message_time.h"
#include "sim/model/cost_table.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Measurements of copies, either to the host or to other ranks.
struct CopyEvidence {
  std::vector<exec::CopyCosts> stages;     ///< by the number of busy ranks, from 0
  std::vector<exec::MessageTime> by_size;  ///< while nothing else runs
  std::vector<Bytes> kept;                 ///< [stage]: the bytes that are moved
};

/// Derives latency, bandwidth and slowdown of a copy.
CopyEntry estimate_copy(const CopyEvidence& evidence);

/// Moves activations to the host and to other ranks if the backend and the schedule allow it, and
/// adds the costs to a table. Throws Error if a run fails.
CostTable with_copies(CostTable costs, const Measurement& measured, const MemoryModel& memory,
                      const RunContext& context);

}  // namespace bubblescope::tools
