// Chimera with forward doubling: a forward processes two micro-batches at once, whose backwards
// follow one by one. Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural Networks
// with Bidirectional Pipelines", 2021.
#include "schedules/chimera_variants.h"
#include "schedules/chunk_cost.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_chimera_doubling(const ScheduleRequest& request) {
  std::vector<std::string> reasons;
  if (request.shape.ranks % 2 != 0)
    reasons.push_back("with an odd `pp` both directions use the same slot; make it even");
  if (request.shape.microbatches % 4 != 0)
    reasons.push_back(
        "half of the micro-batches go in each direction, two at a time: `microbatches` must be a "
        "multiple of 4");
  return reasons;
}

Op microbatch_of_pair(Op op, int n) {
  op.microbatch = 2 * op.microbatch + n;
  return op;
}

Schedule build_chimera_doubling(const ScheduleRequest& request) {
  ScheduleRequest pairs = request;
  pairs.shape.microbatches /= 2;
  return build_chimera_of_pairs(pairs, microbatch_of_pair);
}

/// If m = 2kp, B = 2F and messages take no time, then T = m (F + B) + 2 (p-2) F for every k.
Claims claim_chimera_doubling(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const auto [forward, backward, input_grad, weight_grad, message] = *chunk_cost(request);
  Claims claims;
  if (shape.microbatches % (2 * shape.ranks) != 0) return claims;
  claims.peak_chunks = count_pair_peaks(shape.ranks);
  if (backward != 2 * forward || message > 0) return claims;
  claims.makespan =
      shape.microbatches * (forward + backward) + 2 * Nanos{shape.ranks - 2} * forward;
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar chimera_doubling_registrar{[] {
  return ScheduleDef{
      .name = "chimera-doubling",
      .summary = "chimera whose forwards take two micro-batches: no bubble in the middle",
      .source = "Li and Hoefler 2021",
      .implied_chunks = 1,
      .refuse = refuse_chimera_doubling,
      .build = build_chimera_doubling,
      .claims = claim_chimera_doubling,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
