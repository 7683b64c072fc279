// Puts the parts of a timing together.
#include "sim/predict/find_timing.h"

#include <utility>
#include <vector>

#include "sim/predict/arrivals.h"

namespace bubblescope::inline sim {

Timing find_timing(const Program& program, const Models& models, const Config& config) {
  std::vector<Nanos> durations = inject(config.injections, program, price(program, models.costs));
  durations = price_arrivals(program, std::move(durations), config.arrivals);
  Timing timing =
      make_timing(program, apply_slow_ranks(program, std::move(durations), config.slow_ranks),
                  models.cluster, models.contention);
  timing.gaps = price_gaps(program, models.costs);
  return timing;
}

}  // namespace bubblescope::inline sim
