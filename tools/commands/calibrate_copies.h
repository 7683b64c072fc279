// Calibrates copies: the time to move saved activations to another memory and back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "exec/calibration/contention_costs.h"
#include "exec/gpu/host/job.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Measurements of copies, either to the host or to other ranks.
struct CopyEvidence {
  std::vector<exec::CopyCosts> stages;     ///< by the number of busy ranks, from 0
  std::vector<exec::MessageTime> by_size;  ///< while nothing else runs
  std::vector<Bytes> kept;                 ///< [stage]: the bytes that are moved
};

/// Writes the "copy" of a cost file, or its "to_rank":
///
///   {"latency": "40000ns", "bandwidth_gbps": 430.0, "slowdown": [1.02, 1.05]}
nlohmann::ordered_json write_copy_json(const CopyEvidence& evidence);

/// Moves activations to the host and to other ranks if the backend and the schedule allow it, and
/// adds the costs to a cost file. Throws Error if a run fails.
nlohmann::ordered_json with_copies(nlohmann::ordered_json costs, const Measurement& measured,
                                   const MemoryModel& memory, const RunContext& context);

}  // namespace bubblescope::tools
