// Combines shared links and contention into one Timing.
#include "sim/model/timing.h"

#include <utility>

namespace bubblescope::inline sim {

Timing make_timing(const Program& program, std::vector<Nanos> durations,
                   const std::optional<Cluster>& cluster,
                   const std::optional<Contention>& contention) {
  Timing timing{std::move(durations), {}, {}};
  if (!cluster && !contention) return timing;
  Traffic traffic;
  if (cluster)
    traffic = route_messages(program, timing.durations, *cluster);
  else
    traffic.fixed = timing.durations;
  if (contention) traffic = with_contention(std::move(traffic), program, *contention);
  timing.traffic = std::move(traffic);
  return timing;
}

}  // namespace bubblescope::inline sim
