// ZB-H2: twice the warm-up of ZB-H1, so that no rank waits between its first op and its last. Qi et
// al., "Zero Bubble Pipeline Parallelism", 2024, section 2.3.
#include <algorithm>

#include "schedules/zero_bubble.h"

namespace bubblescope::schedules {
namespace {

constexpr std::int32_t kTwiceHeight = 2;

/// For m >= 2p-1 and 2c <= F + I:
///   T    = m (F + I + W) + (p-1) max(F + c, 2c, 2c + I - F, 2c + F + I - 2W)
///   span = m (F + I + W) + (p-1) max(0, 2c + I - F, 2c + F + I - 2W)
Claims claim_zb_h2(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const auto [forward, backward, input_grad, weight_grad, message] = *chunk_cost(request);
  const Nanos round_trip = 2 * message;
  Claims claims;
  claims.peak_chunks = count_zero_bubble_peaks(request.shape, kTwiceHeight);
  if (microbatches < 2 * ranks - 1 || round_trip > forward + input_grad) return claims;
  const Nanos work = microbatches * (forward + input_grad + weight_grad);
  const Nanos late =
      round_trip + std::max(input_grad - forward, forward + input_grad - 2 * weight_grad);
  claims.makespan = work + (ranks - 1) * std::max({forward + message, round_trip, late});
  claims.max_span = work + (ranks - 1) * clamp_to_zero(late);
  return claims;
}

const ScheduleRegistrar zb_h2_registrar{[] {
  return ScheduleDef{
      .name = "zb-h2",
      .summary = "ZB-H1 with twice the warm-up: no waits inside a rank, 2p-1 micro-batches held",
      .source = "Qi et al. 2024",
      .implied_chunks = 1,
      .build =
          [](const ScheduleRequest& request) { return build_zero_bubble(request, kTwiceHeight); },
      .claims = claim_zb_h2,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
