// 1F1B-V: two chunks per rank in a V and full backwards, with two thirds of 1F1B's memory. Qi et
// al., "Pipeline Parallelism with Controllable Memory", 2024.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

/// The cap is ceil(2p/3) micro-batches, plus half of one if 3 divides p, because no building block
/// without free slots holds less in that case.
ScheduleRequest capped(const ScheduleRequest& request) {
  const std::int32_t ranks = request.shape.ranks;
  return cap_chunks(request, 2 * ((2 * ranks + 2) / 3) + (ranks % 3 == 0 ? 1 : 0));
}

const ScheduleRegistrar one_f_one_b_v_registrar{[] {
  return define_searched(
      {.name = "1f1b-v",
       .summary = "full backwards on a V of two chunks: two thirds of 1F1B's memory",
       .source = "Qi et al. 2024b"},
      SearchForm::kVFused, capped);
}};

}  // namespace
}  // namespace bubblescope::schedules
