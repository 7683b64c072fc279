// V-Min: two chunks per rank in a V, with the least memory that building blocks of uniform ops
// need. Qi et al., "Pipeline Parallelism with Controllable Memory", 2024.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

/// The cap is floor((p+4)/3) micro-batches.
ScheduleRequest with_third_cap(const ScheduleRequest& request) {
  return cap_chunks(request, 2 * ((request.shape.ranks + 4) / 3));
}

const ScheduleRegistrar v_min_registrar{[] {
  return ScheduleDef{
      .name = "v-min",
      .summary = "a third of 1F1B's memory, for most of its bubble",
      .source = "Qi et al. 2024b",
      .implied_chunks = 2,
      .reads_costs = true,
      .refuse =
          [](const ScheduleRequest& request) {
            return refuse_search(with_third_cap(request), SearchForm::kV);
          },
      .build =
          [](const ScheduleRequest& request) {
            return build_searched_under_its_caps(with_third_cap(request), SearchForm::kV);
          },
      .claims =
          [](const ScheduleRequest& request) {
            return claim_work_of_one_rank(request, SearchForm::kV);
          },
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
