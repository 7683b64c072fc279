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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cluster.h"

namespace bubblescope::traces {

class JsonNode;

/// One kind of shared device, such as a NIC.
struct DeviceEntry {
  std::string name;
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share one
  Rate capacity = 0;
  Scope scope = Scope::kAll;
  bool half_duplex = false;
};

struct ClusterEntry {
  std::optional<std::int32_t> ranks_per_node;  ///< empty: all ranks are on one node
  std::optional<LinkSpeed> within_node;        ///< empty: the speed of "message"
  std::optional<LinkSpeed> between_nodes;      ///< empty: same as within a node
  std::vector<DeviceEntry> devices;
  std::optional<Bytes> message_bytes;  ///< empty: the bytes of "message"
};

/// Reads the value of "cluster". Throws Error with the JSON pointer of the first fault.
ClusterEntry read_cluster(const JsonNode& node);

/// Reads bandwidths in Gb/s: one number, or pairs of a size and a number, which are interpolated
/// linearly. Throws Error.
std::vector<SpeedPoint> read_bandwidths(const JsonNode& node);

/// Assigns ranks to nodes and devices: the first ranks_per_node ranks are node 0, the first
/// ranks_per_device ranks share device 0. `message` is the file's default speed.
Cluster place(const ClusterEntry& entry, const LinkSpeed& message, Bytes message_bytes,
              std::int32_t ranks);

}  // namespace bubblescope::traces
