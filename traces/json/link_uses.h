// Writes the traffic over links, as reports and saved steps have it:
//
//   [{"name":"nic 0 out","bytes":8388608,"busy_ns":190000,"shared_ns":40000,
//     "utilization":0.21},...]
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Writes the array, each link on a line of its own with this indent.
void write_links(JsonWriter& json, const std::vector<LinkUse>& links, int indent);

}  // namespace bubblescope::traces
