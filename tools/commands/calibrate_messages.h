// Calibrates messages: their time by size and by the number of busy ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "exec/calibration/contention_costs.h"
#include "exec/gpu/host/job.h"
#include "tools/flags/run_options.h"

namespace bubblescope::tools {

/// Measurements of messages. The observations come from schedules, and from a program in which the
/// ranks of a device take turns; without the latter, contention is left out.
struct MessageEvidence {
  std::vector<exec::Observation> schedules;
  std::vector<exec::Observation> turns;
  std::int32_t ranks_per_device = 1;
  Nanos effective = 0;  ///< from producer to consumer, in the schedules
  Bytes bytes = 0;      ///< size of a message; 0 if it has no payload
  std::vector<exec::MessageTime> by_size = {};
};

/// Writes the "message" of a cost file:
///
///   {"latency": "11us", "bytes": 2097152, "bandwidth_gbps": [[65536, 210], [1048576, 3100]],
///    "contended": ["13us", "14us"]}
///
/// The overhead of a message beyond the copy itself does not depend on contention.
nlohmann::ordered_json write_message_json(const MessageEvidence& evidence);

/// Times messages of several sizes if the backend supports it, and adds all measurements of
/// messages to a cost file.
nlohmann::ordered_json with_messages(nlohmann::ordered_json costs, MessageEvidence evidence,
                                     const Schedule& schedule, const RunOptions& run);

}  // namespace bubblescope::tools
