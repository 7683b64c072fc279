// v-auto: an automatic schedule for given costs and memory caps, two chunks per rank in a V.
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar v_auto_registrar{[] {
  return define_searched(
      {.name = "v-auto",
       .summary =
           "the order with the shortest span on a V of two chunks that heuristics find under `cap`",
       .source = "Qi et al. 2024b"},
      SearchForm::kV);
}};

}  // namespace
}  // namespace bubblescope::schedules
