// Replicas and weight versions in native schedule files, for asynchronous training:
//
//   "replicas":[2,1],                      ranks that share each stage
//   "weights":["0 0 0>1 1","0 0>1 1"]      per op: the version read, and the one written
#pragma once

#include "sim/ir/schedule.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Reads both keys of a schedule object where they are present; its placement must be known.
/// Throws Error with the JSON pointer of the first fault.
void read_asynchronous(const JsonNode& node, Schedule& schedule);

/// Both keys as above, each with a comma before it; empty for synchronous schedules.
void write_asynchronous(JsonWriter& json, const Schedule& schedule);

}  // namespace bubblescope::traces
