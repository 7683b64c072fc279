// Calibrates messages: their time by size and by the number of busy ranks.
#pragma once

#include <vector>

#include "exec/calibration/contention_costs.h"
#include "exec/runtime/message_time.h"
#include "tools/commands/calibration_evidence.h"
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

/// Sets the message of a cost table: latency, bytes, bandwidths by size, and its times under
/// contention. The overhead of a message beyond the copy itself does not depend on contention.
CostTable with_message(CostTable table, const MessageEvidence& evidence);

/// Times messages of several sizes if the backend supports it, and adds all measurements of
/// messages.
CalibratedCosts with_messages(CalibratedCosts costs, MessageEvidence evidence,
                              const Schedule& schedule, const RunOptions& run);

}  // namespace bubblescope::tools
