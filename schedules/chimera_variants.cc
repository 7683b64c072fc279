// Builds orders of pairs from chimera's order.
#include "schedules/chimera_variants.h"

#include <algorithm>

namespace bubblescope::schedules {

Schedule build_chimera_of_pairs(const ScheduleRequest& request, Op (*part)(Op op, int n)) {
  Schedule schedule = find_schedule("chimera").build(request);
  schedule.fused_forwards = 2;
  for (RankOrder& order : schedule.order) {
    RankOrder parts;
    for (const Op& op : order)
      for (const int n : {0, 1}) parts.push_back(part(op, n));
    order = std::move(parts);
  }
  return schedule;
}

std::vector<std::int64_t> count_pair_peaks(std::int32_t ranks) {
  std::vector<std::int64_t> peaks;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    peaks.push_back(2 * (ranks / 2 + 1 + std::min(rank, ranks - 1 - rank)));
  return peaks;
}

}  // namespace bubblescope::schedules
