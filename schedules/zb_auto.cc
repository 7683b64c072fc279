// zb-auto: an automatic zero-bubble schedule for given costs and memory caps, one stage per rank.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 3.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar zb_auto_registrar{[] {
  return define_searched(
      {.name = "zb-auto",
       .summary = "the zero-bubble order with the shortest span that heuristics find under `cap`",
       .source = "Qi et al. 2024, section 3"},
      SearchForm::kLinear);
}};

}  // namespace
}  // namespace bubblescope::schedules
