// V-Half: two chunks per rank in a V, with half of 1F1B's memory; the warm-up and the cool-down are
// packed without raising the peak. Qi et al., "Pipeline Parallelism with Controllable Memory",
// 2024.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

/// The cap is floor((p+2)/2) micro-batches.
ScheduleRequest with_half_cap(const ScheduleRequest& request) {
  return cap_chunks(request, 2 * ((request.shape.ranks + 2) / 2));
}

const ScheduleRegistrar v_half_registrar{[] {
  return define_searched({.name = "v-half",
                          .summary = "half of 1F1B's memory and about half of its bubble",
                          .source = "Qi et al. 2024b"},
                         SearchForm::kV, with_half_cap);
}};

}  // namespace
}  // namespace bubblescope::schedules
