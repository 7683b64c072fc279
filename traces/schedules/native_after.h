// The key of native schedules that holds after edges.
//
//   "after":["1F1 after 0B0 2F0"]    1F1 starts when 0B0 and 2F0 have ended
#pragma once

#include "sim/ir/schedule.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Throws Error with the JSON pointer of the first entry that is not of this form.
void read_after(const JsonNode& node, Schedule& schedule);

/// Writes nothing if there are no edges. Neighbouring edges of one op share an entry.
void write_after(JsonWriter& json, const Schedule& schedule);

}  // namespace bubblescope::traces
