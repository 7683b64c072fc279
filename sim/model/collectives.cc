// Adds up the alpha-beta costs of collectives: Thakur et al., "Optimization of Collective
// Communication Operations in MPICH", 2005.
#include "sim/model/collectives.h"

#include <algorithm>
#include <bit>

#include "sim/ir/range.h"

namespace bubblescope::inline sim {

Nanos estimate_all_reduce_time(double bytes, std::int32_t ranks, const GroupLink& link) {
  if (ranks <= 1) return 0;
  const Nanos ring = 2 * estimate_all_gather_time(bytes, ranks, link);
  const auto depth = std::bit_width(static_cast<std::uint32_t>(ranks) - 1);
  return std::min(ring, 2 * depth * link.latency + 2 * (link.time(bytes) - link.latency));
}

Nanos estimate_all_gather_time(double bytes, std::int32_t ranks, const GroupLink& link,
                               double pieces) {
  if (ranks <= 1) return 0;
  const double sent = bytes * (ranks - 1) / ranks;
  // In a small group a step takes a message's latency. In a large one the ring's steps overlap, and
  // each takes no more than NCCL needs to pass data on.
  const auto steps =
      std::min<Nanos>(ranks - 1, 2 * std::bit_width(static_cast<std::uint32_t>(ranks)));
  const Nanos around =
      round_nanos(pieces * static_cast<double>(link.ring_latency), "a collective's steps");
  return std::max(steps * link.latency, around) + link.time(sent) - link.latency;
}

Nanos estimate_all_to_all_time(double bytes, std::int32_t ranks, const Link& link) {
  if (ranks <= 1) return 0;
  return link.time(bytes * (ranks - 1) / ranks);
}

}  // namespace bubblescope::inline sim
