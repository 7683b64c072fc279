// Recomputation and offload in native schedule files:
//
//   "recompute":["full","none"]            per stage: none, selective or full
//   "offload_targets":[1,null]             per rank: the rank it offloads to; null: the host
#pragma once

#include "sim/ir/schedule.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

inline constexpr JsonKey kOffloadTargets{"offload_targets", "keepers"};

/// Reads both keys of a schedule object where they are present; its placement must be known.
/// Throws Error with the JSON pointer of the first fault.
void read_activation_keys(const JsonNode& node, Schedule& schedule);

/// Both keys as above, each with a comma before it; empty where everything is kept.
void write_activation_keys(JsonWriter& json, const Schedule& schedule);

}  // namespace bubblescope::traces
