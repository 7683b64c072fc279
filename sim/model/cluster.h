// The cluster: which rank is on which node, the speed of every link, and the devices that messages
// of several ranks share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/units.h"
#include "sim/model/cost_tensor.h"

namespace bubblescope::inline sim {

/// Bandwidth in units of 1/720720 byte per nanosecond, and bytes in the same units. 720720 is a
/// multiple of 1..16, and 0.1 Gb/s is 9009 units: usual bandwidths and equal shares of them are
/// exact.
using Rate = std::int64_t;
using Load = std::int64_t;
inline constexpr Load kLoadPerByte = 720'720;
/// The Load of many messages: of kMaxBytes bytes at most, which takes more than 64 bits.
__extension__ typedef __int128 LoadSum;
/// The largest message whose Load fits.
inline constexpr Bytes kMaxMessageBytes = 10'000'000'000'000;

/// The nearest Rate. Throws Error outside 0.001 to 1 000 000 Gb/s.
Rate rate_of(double bandwidth_gbps);

/// A measured point of a link: the bandwidth of messages of this size.
struct SpeedPoint {
  Bytes bytes = 0;
  double bandwidth_gbps = 0;
};

/// A link between two ranks, in one direction.
struct LinkSpeed {
  Nanos latency = 0;
  std::vector<SpeedPoint> points;  ///< ascending in bytes; empty: bytes take no time

  /// The bandwidth for a message size: interpolated between points, constant outside them. There
  /// must be points.
  double bandwidth_gbps(Bytes message) const;
  Rate rate(Bytes message) const { return rate_of(bandwidth_gbps(message)); }
  /// The bandwidth that all messages on the link share.
  Rate capacity() const;
};

/// The scope of a shared device: the messages that pass it.
enum class Scope : std::uint8_t { kAll, kWithinNode, kBetweenNodes };

/// A NIC, a PCIe switch, a port: the messages of its ranks share its bandwidth.
struct SharedDevice {
  std::string name;  ///< "nic 0"
  std::vector<std::int32_t> ranks;
  Rate capacity = 0;
  Scope scope = Scope::kAll;
  bool half_duplex = false;  ///< one bandwidth for both directions together; else one for each
};

/// A link whose speed differs from its node's.
struct OwnLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  LinkSpeed speed;
  Bytes bytes = 0;  ///< size of a message on it
};

/// The sizes of the two messages that a micro-batch's ops on a stage send: the activation to the
/// next stage, and the gradient to the previous one.
struct MessageSizes {
  Bytes forward = 0;
  Bytes backward = 0;
};

struct Cluster {
  std::vector<std::int32_t> node_of_rank;  ///< [rank]
  LinkSpeed within_node;
  LinkSpeed between_nodes;
  std::vector<OwnLink> links;
  std::vector<SharedDevice> devices;
  Bytes message_bytes = 0;
  CostTensor<MessageSizes> sizes = {};  ///< if present, replaces the sizes of links and messages

  bool same_node(std::int32_t from, std::int32_t to) const {
    return node_of_rank[from] == node_of_rank[to];
  }
  const OwnLink* own_link(std::int32_t from, std::int32_t to) const;
  const LinkSpeed& speed(std::int32_t from, std::int32_t to) const;
  Bytes bytes(std::int32_t from, std::int32_t to) const;
  /// Returns the size of one message: that of its SEND's micro-batch, or of its link.
  Bytes bytes(const Op& send, std::int32_t from, std::int32_t to) const;
};

}  // namespace bubblescope::inline sim
