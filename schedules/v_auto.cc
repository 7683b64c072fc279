// v-auto: an automatic schedule for given costs and memory caps, two chunks per rank in a V.
// Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar v_auto_registrar{[] {
  return ScheduleDef{
      .name = "v-auto",
      .summary =
          "the order with the shortest span on a V of two chunks that heuristics find under `cap`",
      .source = "Qi et al. 2024b",
      .implied_chunks = 2,
      .reads_costs = true,
      .refuse =
          [](const ScheduleRequest& request) { return refuse_search(request, SearchForm::kV); },
      .build =
          [](const ScheduleRequest& request) { return build_searched(request, SearchForm::kV); },
      .claims =
          [](const ScheduleRequest& request) {
            return claim_work_of_one_rank(request, SearchForm::kV);
          },
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
