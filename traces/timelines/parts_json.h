// The runs of parts as json.
//
//   {"runs":[{"time_ns":9000,"first_end_ns":9000,
//             "uses":[["attn","compute",false,0,0],...],   part, lane, whether of the second op of
//                                                          a pair, exposed and slowed time
//             "spans":[[0,0,0,4000],...],                  use, layer, start and end
//             "turns":[[false,4000],...]},...],            of pairs: whose time it is, until when
//    "placed":[[3,3,0],[5,9,1],...]}                       first and last instruction, run
#pragma once

#include "sim/analysis/parts_report.h"
#include "sim/ir/timeline.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

void write_parts_json(JsonWriter& json, const PartsReport& parts);

/// Throws Error with the JSON pointer of the first fault.
PartsReport read_parts_json(const JsonNode& node, const Program& program, const Timeline& timeline);

}  // namespace bubblescope::traces
