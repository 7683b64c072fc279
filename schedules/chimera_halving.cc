// Chimera with backward halving: a backward processes half a micro-batch, written as one of its two
// slices. Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks with
// Bidirectional Pipelines", 2021.
#include "schedules/chimera_variants.h"
#include "schedules/chunk_cost.h"

namespace bubblescope::schedules {
namespace {

/// Backwards of slices run in reverse order.
Op half_of_microbatch(Op op, int n) {
  op.slice = static_cast<std::int16_t>(op.kind == OpKind::kForward ? n : 1 - n);
  return op;
}

Schedule build_chimera_halving(const ScheduleRequest& request) {
  return build_chimera_of_pairs(request, half_of_microbatch);
}

/// If m = kp, B = 2F and messages take no time, then T = m (F + B) + (p-2) F for every k.
Claims claim_chimera_halving(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  ScheduleRequest halves = request;
  halves.shape.slices = 2;
  Claims claims;
  if (shape.microbatches % shape.ranks != 0) return claims;
  claims.peak_chunks = count_pair_peaks(shape.ranks);
  const std::optional<ChunkCost> half = chunk_cost(halves);
  if (!half || half->backward != 2 * half->forward || half->message > 0) return claims;
  claims.makespan = 2 * (shape.microbatches * (half->forward + half->backward) +
                         Nanos{shape.ranks - 2} * half->forward);
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar chimera_halving_registrar{[] {
  return ScheduleDef{
      .name = "chimera-halving",
      .summary = "chimera whose backwards take half a micro-batch: no bubble in the middle",
      .source = "Li and Hoefler 2021",
      .implied_chunks = 1,
      .implied_slices = 2,
      .refuse =
          [](const ScheduleRequest& request) { return find_schedule("chimera").refuse(request); },
      .build = build_chimera_halving,
      .claims = claim_chimera_halving,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
