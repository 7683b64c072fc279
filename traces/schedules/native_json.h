// The schedule object of native files: a schedule file is one, and a timeline file contains one.
#pragma once

#include "sim/ir/schedule.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Reads a "bubblescope-schedule/1" object. Throws Error with the JSON pointer of the first fault.
Schedule read_schedule_object(const JsonNode& node);

/// Writes such an object; no line end after it.
void write_schedule_object(JsonWriter& json, const Schedule& schedule);

}  // namespace bubblescope::traces
