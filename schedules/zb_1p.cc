// ZB-1p: zb-auto with at most p micro-batches per rank, as on 1F1B's first rank. Qi et al., "Zero
// Bubble Pipeline Parallelism", 2024, section 3.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

ScheduleRequest with_one_f_one_b_cap(const ScheduleRequest& request) {
  return cap_microbatches(request, request.shape.ranks);
}

const ScheduleRegistrar zb_1p_registrar{[] {
  return define_searched({.name = "zb-1p",
                          .summary = "zb-auto with the memory of 1F1B: p micro-batches per rank",
                          .source = "Qi et al. 2024, section 3"},
                         SearchForm::kLinear, with_one_f_one_b_cap);
}};

}  // namespace
}  // namespace bubblescope::schedules
