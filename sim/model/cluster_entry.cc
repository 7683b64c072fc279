// Assigns ranks to nodes and devices.
#include "sim/model/cluster_entry.h"

#include <algorithm>
#include <utility>

namespace bubblescope::inline sim {

namespace {

void add_devices(Cluster& cluster, const DeviceEntry& entry, std::int32_t ranks) {
  for (std::int32_t first = 0; first < ranks; first += entry.ranks_per_device) {
    SharedDevice device;
    device.name = entry.name + " " + std::to_string(first / entry.ranks_per_device);
    device.capacity = entry.capacity;
    device.scope = entry.scope;
    device.half_duplex = entry.half_duplex;
    const std::int32_t end = std::min(ranks - first, entry.ranks_per_device) + first;
    for (std::int32_t rank = first; rank < end; ++rank) device.ranks.push_back(rank);
    cluster.devices.push_back(std::move(device));
  }
}

}  // namespace

Cluster place_ranks(const ClusterEntry& entry, const LinkSpeed& message, Bytes message_bytes,
                    std::int32_t ranks) {
  Cluster cluster;
  const std::int32_t per_node = entry.ranks_per_node.value_or(ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank) cluster.node_of_rank.push_back(rank / per_node);
  cluster.within_node = entry.within_node.value_or(message);
  cluster.between_nodes = entry.between_nodes.value_or(cluster.within_node);
  cluster.message_bytes = entry.message_bytes.value_or(message_bytes);
  for (const DeviceEntry& device : entry.devices) add_devices(cluster, device, ranks);
  return cluster;
}

}  // namespace bubblescope::inline sim
