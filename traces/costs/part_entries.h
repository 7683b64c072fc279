// The parts of ops in cost files: a duration may be an object with parts instead.
//
//   "forward": {"layers": 4, "parts": [
//     {"name": "attn", "time": "4.3ms"},
//     {"name": "dispatch", "lane": "expert", "time": "6.1ms"},
//     {"name": "mlp", "time": ["4.7ms", "4.8ms", "4.8ms", "4.9ms"]},
//     {"name": "combine", "lane": "expert", "time": "7.3ms"}]},
//   "overlapped_pair": {"order": "dualpipe"},
//   "part_contention": [{"lane": "compute", "beside": "expert", "slowdown": 1.1}]
#pragma once

#include "traces/costs/cost_lists.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// Whether a value has parts, or an order of parts.
bool has_parts(const JsonNode& node);

/// Reads the parts of an op, and sets its duration to that of its parts; or reads a pair's order.
void read_parts(const JsonNode& node, CostKey key, StageDraft& draft);

/// Reads how lanes slow each other; the root says so once for all ranks.
LaneContention read_lane_contention(const JsonNode& root);

}  // namespace bubblescope::traces
