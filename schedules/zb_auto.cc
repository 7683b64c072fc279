// zb-auto: an automatic zero-bubble schedule for given costs and memory caps, one stage per rank.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 3.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar zb_auto_registrar{[] {
  return ScheduleDef{
      .name = "zb-auto",
      .summary = "the zero-bubble order with the shortest span that heuristics find under `cap`",
      .source = "Qi et al. 2024, section 3",
      .implied_chunks = 1,
      .reads_costs = true,
      .refuse =
          [](const ScheduleRequest& request) {
            return refuse_search(request, SearchForm::kLinear);
          },
      .build =
          [](const ScheduleRequest& request) {
            return build_searched(request, SearchForm::kLinear);
          },
      .claims =
          [](const ScheduleRequest& request) {
            return claim_work_of_one_rank(request, SearchForm::kLinear);
          },
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
