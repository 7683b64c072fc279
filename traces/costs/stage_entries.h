// The stages of a cost file: one object per stage, and values in the root for all of them.
#pragma once

#include "sim/model/cost_table.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// Reads the values and lists of all stages into the table. Throws Error with the JSON pointer of
/// the first fault.
void read_stages(const JsonNode& root, CostTable& costs);

/// Reads a stage on its own, whose values all micro-batches share. Refuses lists.
StageEntry read_stage(const JsonNode& node);

}  // namespace bubblescope::traces
