// Turns the times of collectives into causes.
#include "sim/analysis/exposed_collectives.h"

#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

std::vector<Cause> find_exposed_collectives(
    const std::map<std::string, std::vector<Nanos>>& exposed) {
  std::vector<Cause> causes;
  for (const auto& [name, times] : exposed) {
    Cause cause{ExposedCollective{name}};
    for (const Nanos time : times) cause.saves += time / static_cast<Nanos>(times.size());
    cause.saves_p5 = quantile(times, 5);
    cause.saves_p95 = quantile(times, 95);
    if (cause.saves > 0) causes.push_back(std::move(cause));
  }
  return causes;
}

}  // namespace bubblescope::inline sim
