// Converts bandwidths to integers.
#include "sim/model/cluster.h"

#include <algorithm>
#include <cmath>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

Rate rate_of(double bandwidth_gbps) {
  constexpr double kMin = 0.001;
  constexpr double kMax = 1e6;
  if (!(bandwidth_gbps >= kMin && bandwidth_gbps <= kMax))
    throw Error("a bandwidth must be 0.001 to 1000000 Gb/s");
  return std::llround(bandwidth_gbps * static_cast<double>(kLoadPerByte) / 8);
}

double LinkSpeed::bandwidth_gbps(Bytes message) const {
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const SpeedPoint& point) { return point.bytes >= message; });
  if (above == points.end()) return points.back().bandwidth_gbps;
  if (above == points.begin()) return above->bandwidth_gbps;
  const SpeedPoint& below = *(above - 1);
  const double part =
      static_cast<double>(message - below.bytes) / static_cast<double>(above->bytes - below.bytes);
  return below.bandwidth_gbps + part * (above->bandwidth_gbps - below.bandwidth_gbps);
}

Rate LinkSpeed::capacity() const {
  double highest = 0;
  for (const SpeedPoint& point : points) highest = std::max(highest, point.bandwidth_gbps);
  return rate_of(highest);
}

const OwnLink* Cluster::own_link(std::int32_t from, std::int32_t to) const {
  const auto found = std::find_if(links.begin(), links.end(), [&](const OwnLink& link) {
    return link.from == from && link.to == to;
  });
  return found == links.end() ? nullptr : &*found;
}

const LinkSpeed& Cluster::speed(std::int32_t from, std::int32_t to) const {
  if (const OwnLink* own = own_link(from, to)) return own->speed;
  return same_node(from, to) ? within_node : between_nodes;
}

Bytes Cluster::bytes(std::int32_t from, std::int32_t to) const {
  const OwnLink* own = own_link(from, to);
  return own ? own->bytes : message_bytes;
}

Bytes Cluster::bytes(const Op& send, std::int32_t from, std::int32_t to) const {
  if (sizes.empty()) return bytes(from, to);
  const MessageSizes& size = sizes(send);
  return send.kind == OpKind::kSendForward ? size.forward : size.backward;
}

}  // namespace bubblescope::inline sim
