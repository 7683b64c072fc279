// Builds the cluster of a uniform network.
#include "sim/model/uniform_network.h"

#include "sim/model/cluster_entry.h"

namespace bubblescope::inline sim {

namespace {

LinkSpeed speed_of(Nanos latency, const std::optional<double>& gbps) {
  LinkSpeed speed{latency, {}};
  if (gbps) speed.points.push_back({0, *gbps});
  return speed;
}

}  // namespace

Cluster make_cluster(const UniformNetwork& network, Nanos latency, std::int32_t ranks) {
  ClusterEntry entry;
  entry.ranks_per_node = network.ranks_per_node;
  entry.message_bytes = network.bytes;
  entry.within_node = speed_of(latency, network.link_gbps);
  entry.between_nodes =
      speed_of(latency, network.between_gbps ? network.between_gbps : network.link_gbps);
  if (network.nic_gbps) {
    DeviceEntry nic;
    nic.name = "nic";
    nic.ranks_per_device = network.ranks_per_nic.value_or(*network.ranks_per_node);
    nic.capacity = rate_of(*network.nic_gbps);
    nic.scope = Scope::kBetweenNodes;
    entry.devices.push_back(nic);
  }
  return place_ranks(entry, {}, 0, ranks);
}

}  // namespace bubblescope::inline sim
