// The cost file: durations per stage, messages, links and memory.
// docs/cost_file.md has the whole schema.
//
//   {"format": "bubblescope-costs/1",
//    "stages": [
//      {"forward": "10.5ms", "input_grad": "10.1ms", "weight_grad": "9.3ms",
//       "activation_bytes": {"saved": "1.5GiB", "released_by_input_grad": "1GiB"},
//       "optimizer": "3ms", "reduce_grad": "8ms", "unshard": "4ms", "weight_bytes": "2GiB"},
//      {"forward": 12, "backward": 21.5}],
//    "stage_kinds": {"first": {...}, "middle": {...}, "last": {...}},  other numbers of stages
//    "copy": {"latency": "5us", "bandwidth_gbps": 200},
//    "message": {"latency": "12us", "bytes": "64MiB", "bandwidth_gbps": 400},
//    "norm": "150us",
//    "links": [{"from": 1, "to": 0, "latency": "30us"}],
//    "memory": {"static_bytes": ["12GiB", "11GiB"]},
//    "cluster": {...},                      nodes, and what messages share: cluster_entry.h
//    "ranks_per_device": 4, ...             and "contended" of stages: contention_entry.h
//    "replicas": [{"stages": [...]}, ...],  data-parallel replicas with stages of their own
//    "noise": {...},                        how steps differ: noise_entry.h
//    "outside_pipeline": "200ms",           of a step: collectives, optimizer
//    "divisible": true,                     stages may be cut and joined evenly: restage.h
//    "ends": "heavier-layers",              the first and the last keep their ratios then
//    "measured": {...}}                     how it was measured (calibrate writes it); not read
#pragma once

#include <string>
#include <string_view>

#include "sim/model/cost_table.h"

namespace bubblescope::traces {

/// Reads a cost file; "-" is stdin. Throws Error with the JSON pointer of the first fault.
CostTable read_cost_file(const std::string& path);
CostTable parse_cost_file(std::string_view text, const std::string& file);

}  // namespace bubblescope::traces
