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
  return define_searched({.name = "v-min",
                          .summary = "a third of 1F1B's memory, for most of its bubble",
                          .source = "Qi et al. 2024b"},
                         SearchForm::kV, with_third_cap);
}};

}  // namespace
}  // namespace bubblescope::schedules
