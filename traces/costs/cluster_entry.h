// The "cluster" of a cost file: nodes, their links, and the devices that messages share.
//
//   "cluster": {
//     "ranks_per_node": 8, "message_bytes": "64MiB",
//     "within_node": {"latency": "3us", "bandwidth_gbps": 3600},
//     "between_nodes": {"latency": "12us",
//                       "bandwidth_gbps": [["64KiB", 20], ["1MiB", 200], ["64MiB", 380]]},
//     "devices": [{"name": "nic", "ranks_per_device": 2, "bandwidth_gbps": 400,
//                  "scope": "between_nodes"}]}
#pragma once

#include <vector>

#include "sim/model/cluster_entry.h"

namespace bubblescope::traces {

class JsonNode;

/// Reads the value of "cluster". Throws Error with the JSON pointer of the first fault.
ClusterEntry read_cluster(const JsonNode& node);

/// Reads bandwidths in Gb/s: one number, or pairs of a size and a number, which are interpolated
/// linearly. Throws Error.
std::vector<SpeedPoint> read_bandwidths(const JsonNode& node);

}  // namespace bubblescope::traces
