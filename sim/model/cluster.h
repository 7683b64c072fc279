// The cluster: which rank is on which node, how fast a message is between two ranks, and which
// devices messages of several ranks share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope {

/// Bandwidth in whole units of 1/720720 byte per nanosecond, and bytes in the same units. 720720 is
/// a multiple of 1..16, and 0.1 Gb/s is 9009: usual bandwidths and equal shares of them are exact.
using Rate = std::int64_t;
using Load = std::int64_t;
inline constexpr Load kLoadPerByte = 720'720;
inline constexpr Bytes kMostMessageBytes = 10'000'000'000'000;  ///< whose Load still fits

/// The nearest Rate. Throws Error outside 0.001 to 1 000 000 Gb/s.
Rate rate_of(double bandwidth_gbps);

/// A measured point of a link: messages of this size get this bandwidth.
struct SpeedPoint {
  Bytes bytes = 0;
  double bandwidth_gbps = 0;
};

/// A link between two ranks, in one direction.
struct LinkSpeed {
  Nanos latency = 0;
  std::vector<SpeedPoint> points;  ///< ascending in bytes; none: bytes take no time

  /// The bandwidth of messages of a size: linear between points, the nearest one's outside. There
  /// are points.
  double bandwidth_gbps(Bytes message) const;
  Rate rate(Bytes message) const { return rate_of(bandwidth_gbps(message)); }
  /// The most that all messages on the link get together.
  Rate capacity() const;
};

/// Which messages a shared device carries.
enum class Carries : std::uint8_t { kAll, kWithinNode, kBetweenNodes };

/// A NIC, a PCIe switch, a port: the messages of its ranks share its bandwidth.
struct SharedDevice {
  std::string name;  ///< "nic 0"
  std::vector<std::int32_t> ranks;
  Rate capacity = 0;
  Carries carries = Carries::kAll;
  bool half_duplex = false;  ///< both directions share one bandwidth; else each has its own
};

/// A link that differs from its node's.
struct OwnLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  LinkSpeed speed;
  Bytes bytes = 0;  ///< of a message on it
};

struct Cluster {
  std::vector<std::int32_t> node_of_rank;  ///< [rank]
  LinkSpeed within_node;
  LinkSpeed between_nodes;
  std::vector<OwnLink> links;
  std::vector<SharedDevice> devices;
  Bytes message_bytes = 0;

  bool same_node(std::int32_t from, std::int32_t to) const {
    return node_of_rank[from] == node_of_rank[to];
  }
  const OwnLink* own_link(std::int32_t from, std::int32_t to) const;
  const LinkSpeed& speed(std::int32_t from, std::int32_t to) const;
  Bytes bytes(std::int32_t from, std::int32_t to) const;
};

}  // namespace bubblescope
