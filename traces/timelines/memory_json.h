// A memory model as json. What has its default value is left out.
//
//   {"release":"w",
//    "unit":[1000000,0,-1000000],       millionths that F, I and W add, times "unit_parts"
//    "unit_parts":1,
//    "saved":[0,298246],                millionths that a full and a selective recompute save
//    "activation_bytes":[[4096,-2048,-2048],...],              per stage: what F, I and W add
//    "checkpoint_bytes":[512,...], "weight_bytes":[...], "gathered_bytes":[...]    per stage
//    "static_bytes":[8192,...],                                                    per rank
//    "microbatch_bytes":[[[4096,-2048,-2048,512],...],...],    per stage, micro-batch and slice
//    "output_bytes":[[[64,64],...],...],                       likewise: activation, gradient
//    "counts_outputs":true, "counts_gathered":true}
//
// A stage whose micro-batches have the same bytes has those of its slices alone.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Whether reports count memory just as they do without a model: in micro-batches.
bool is_plain(const MemoryModel& memory, const Shape& shape);

void write_memory_json(JsonWriter& json, const MemoryModel& memory);

/// Reads a model for a schedule, without limits. Throws Error with the JSON pointer of the first
/// fault.
MemoryModel read_memory_json(const JsonNode& node, const Schedule& schedule);

}  // namespace bubblescope::traces
