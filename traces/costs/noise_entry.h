// The entry "noise" of cost files: how steps differ, with the names of the flags.
//
//   "noise": {"jitter": 0.02, "p2p_jitter": 0.1, "rank_jitter": 0.01, "length_jitter": 0.3,
//             "step_jitter": 0.02, "shape": "lognormal",
//             "straggler": {"probability": 0.001, "factor": 3, "of": "op"}}
//
// Sigmas and probabilities are fractions from 0 to 1; keys that are left out are 0.
#pragma once

#include "sim/model/noise.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Throws Error with the JSON pointer of the first fault.
Noise read_noise(const JsonNode& node);

/// Writes the object.
void write_noise_entry(JsonWriter& json, const Noise& noise);

}  // namespace bubblescope::traces
