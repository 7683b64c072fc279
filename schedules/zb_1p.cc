// ZB-1p: zb-auto with at most p micro-batches per rank, as on 1F1B's first rank. Qi et al., "Zero
// Bubble Pipeline Parallelism", 2024, section 3.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar zb_1p_registrar{[] {
  return ScheduleDef{
      .name = "zb-1p",
      .summary = "zb-auto with the memory of 1F1B: p micro-batches per rank",
      .source = "Qi et al. 2024, section 3",
      .implied_chunks = 1,
      .reads_costs = true,
      .refuse =
          [](const ScheduleRequest& request) {
            return refuse_search(cap_microbatches(request, request.shape.ranks),
                                 SearchForm::kLinear);
          },
      .build =
          [](const ScheduleRequest& request) {
            return build_searched_under_its_caps(cap_microbatches(request, request.shape.ranks),
                                                 SearchForm::kLinear);
          },
      .claims =
          [](const ScheduleRequest& request) {
            return claim_work_of_one_rank(request, SearchForm::kLinear);
          },
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
