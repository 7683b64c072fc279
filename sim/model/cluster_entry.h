// A cluster without its ranks: the sizes of nodes, their links, and the devices that messages
// share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/cluster.h"

namespace bubblescope::inline sim {

/// One kind of shared device, such as a NIC.
struct DeviceEntry {
  std::string name;
  std::int32_t ranks_per_device = 1;  ///< adjacent ranks share one
  Rate capacity = 0;
  Scope scope = Scope::kAll;
  bool half_duplex = false;
};

struct ClusterEntry {
  std::optional<std::int32_t> ranks_per_node;  ///< empty: all ranks are on one node
  std::optional<LinkSpeed> within_node;        ///< empty: the default speed
  std::optional<LinkSpeed> between_nodes;      ///< empty: same as within a node
  std::vector<DeviceEntry> devices;
  std::optional<Bytes> message_bytes;  ///< empty: the default bytes
};

/// Assigns ranks to nodes and devices: the first ranks_per_node ranks are node 0, the first
/// ranks_per_device ranks share device 0. `message` is the default speed of a link.
Cluster place_ranks(const ClusterEntry& entry, const LinkSpeed& message, Bytes message_bytes,
                    std::int32_t ranks);

}  // namespace bubblescope::inline sim
