// A network of equal nodes: the size of messages, the speed of links, and NICs that ranks share.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/ir/units.h"
#include "sim/model/cluster.h"

namespace bubblescope::inline sim {

/// Where nodes matter (`between_gbps`, `nic_gbps`), `ranks_per_node` must be given.
struct UniformNetwork {
  Bytes bytes = 0;
  std::optional<double> link_gbps;     ///< of each link; bytes take no time on it unless given
  std::optional<double> between_gbps;  ///< of each link between nodes; link_gbps unless given
  std::optional<std::int32_t> ranks_per_node;
  std::optional<double> nic_gbps;  ///< what the messages of a NIC's ranks share, each direction
  std::optional<std::int32_t> ranks_per_nic;  ///< ranks_per_node unless given
};

/// Every message takes `latency` plus the time of its bytes.
Cluster make_cluster(const UniformNetwork& network, Nanos latency, std::int32_t ranks);

}  // namespace bubblescope::inline sim
