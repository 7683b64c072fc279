// Contention in a cost file: how long ops take while other ranks of their device are busy.
//
//   {"ranks_per_device": 4, "message": {"latency": "9us", "contended": ["10us", "11us"]},
//    "stages": [{"forward": "1ms", "input_grad": "1ms", "weight_grad": "0.9ms",
//                "contended": {"forward": ["1.02ms", "1.05ms", "1.1ms"],    2, 3 and 4 ranks busy
//                              "input_grad": ["1.03ms"]}}],                 2 or more
//    "kind_contention": [{"kind": "forward", "beside": "weight_grad", "weight": 1.3}]}
#pragma once

#include <optional>

#include "sim/model/cost_table.h"

namespace bubblescope::traces {

class JsonNode;

/// Reads a stage's "contended". Throws Error with the JSON pointer of the first fault.
ContentionEntry read_contention(const JsonNode& node);

/// Reads the root's "kind_contention"; nullopt if it has none. Throws the same.
std::optional<KindWeights> read_kind_contention(const JsonNode& root);

}  // namespace bubblescope::traces
