// The "cluster" of a cost file: nodes, their links, and what messages share.
//
//   "cluster": {
//     "ranks_per_node": 8, "message_bytes": "64MiB",
//     "within_node": {"latency": "3us", "bandwidth_gbps": 3600},
//     "between_nodes": {"latency": "12us",
//                       "bandwidth_gbps": [["64KiB", 20], ["1MiB", 200], ["64MiB", 380]]},
//     "devices": [{"name": "nic", "ranks_per_device": 2, "bandwidth_gbps": 400,
//                  "carries": "between_nodes"}]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cluster.h"

namespace bubblescope {

class JsonNode;

/// One kind of device, of which there are several.
struct DeviceEntry {
  std::string name;
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share one
  Rate capacity = 0;
  Carries carries = Carries::kAll;
  bool half_duplex = false;
};

struct ClusterEntry {
  std::optional<std::int32_t> ranks_per_node;  ///< empty: all ranks are on one node
  std::optional<LinkSpeed> within_node;        ///< empty: as "message" says
  std::optional<LinkSpeed> between_nodes;      ///< empty: as within a node
  std::vector<DeviceEntry> devices;
  std::optional<Bytes> message_bytes;  ///< empty: as "message" says
};

/// Reads the value of the key. Throws Error with the JSON pointer of the first fault.
ClusterEntry read_cluster(const JsonNode& node);

/// Reads a number, or pairs of a size and a number, each in Gb/s: linear between the sizes. Throws
/// Error.
std::vector<SpeedPoint> read_bandwidths(const JsonNode& node);

/// Places ranks and devices: the first ranks_per_node ranks are node 0, the first ranks_per_device
/// share device 0. `message` is what "message" says.
Cluster place(const ClusterEntry& entry, const LinkSpeed& message, Bytes message_bytes,
              std::int32_t ranks);

}  // namespace bubblescope
