// `--network`: messages with bytes, links and NICs, without a cost file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/units.h"
#include "sim/model/cluster.h"

namespace bubblescope::tools {

/// "bytes=64MiB,link=3600,per-node=4,between=400,nic=400,ranks-per-nic=2"
struct NetworkOptions {
  Bytes bytes = 0;
  std::optional<double> link_gbps;     ///< of each link; bytes take no time on it unless given
  std::optional<double> between_gbps;  ///< of each link between nodes; link_gbps unless given
  std::optional<std::int32_t> ranks_per_node;
  std::optional<double> nic_gbps;  ///< what the messages of a NIC's ranks share, each direction
  std::optional<std::int32_t> ranks_per_nic;  ///< ranks_per_node unless given
};

/// Writes the options in the form that parse_network() reads.
std::string to_string(const NetworkOptions& options);

/// Throws Error for an unknown key, naming the nearest known one.
NetworkOptions parse_network(std::string_view text);

/// Every message takes `latency` plus the time of its bytes.
Cluster cluster_of(const NetworkOptions& options, Nanos latency, std::int32_t ranks);

}  // namespace bubblescope::tools
