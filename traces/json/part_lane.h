// The lane of a part, by its name.
#pragma once

#include "sim/model/op_parts.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// Refuses a text that names no lane, with the names of all.
PartLane read_part_lane(const JsonNode& node);

}  // namespace bubblescope::traces
