// Puts the parts of a timing together.
#include "sim/predict/find_timing.h"

#include <utility>
#include <vector>

#include "sim/predict/arrivals.h"

namespace bubblescope::inline sim {

namespace {

Timing complete_timing(const Program& program, std::vector<Nanos> durations, const Models& models) {
  Timing timing = make_timing(program, std::move(durations), models.cluster, models.contention);
  timing.gaps = price_gaps(program, models.costs);
  return timing;
}

}  // namespace

Timing find_timing(const Program& program, const Models& models) {
  return complete_timing(program, price(program, models.costs), models);
}

Timing find_timing(const Program& program, const Models& models, const Config& config) {
  std::vector<Nanos> durations = inject(config.injections, program, price(program, models.costs));
  durations = price_arrivals(program, std::move(durations), config.arrivals);
  if (!config.arrivals.empty() || !config.slow_ranks.empty())
    durations = apply_slow_ranks(program, std::move(durations), config.slow_ranks);
  return complete_timing(program, std::move(durations), models);
}

}  // namespace bubblescope::inline sim
