// ZB-2p: zb-auto with twice the memory of 1F1B. Qi et al., "Zero Bubble Pipeline Parallelism",
// 2024, section 3.
#include "schedules/searched.h"

namespace bubblescope::schedules {
namespace {

/// The paper counts memory in M_B, of which I releases M_B - M_W. If all of it were held until W,
/// the last rank could delay only 2p W's, and its bubble would be at least
///   (p-1) (F + I + 2c) - (2p-1) W
/// which is more than the published rates. So unless the request's memory model says when memory is
/// released, I releases half of it. Reports count by that model: with its default, which releases
/// everything at W, a rank may hold more than 2p (docs/memory.md).
ScheduleRequest with_double_cap(ScheduleRequest request) {
  const MemoryDelta held_until_weight_grad = MemoryModel{}.unit;
  MemoryDelta& unit = request.memory.unit;
  if (unit.forward == held_until_weight_grad.forward && unit.input_grad == 0)
    unit = {unit.forward, -unit.forward / 2, -unit.forward / 2};
  return cap_microbatches(request, 2 * request.shape.ranks);
}

const ScheduleRegistrar zb_2p_registrar{[] {
  return define_searched(
      {.name = "zb-2p",
       .summary =
           "zb-auto with twice the memory of 1F1B (half of it released at I): span rate near 0",
       .source = "Qi et al. 2024, section 3"},
      SearchForm::kLinear, with_double_cap);
}};

}  // namespace
}  // namespace bubblescope::schedules
