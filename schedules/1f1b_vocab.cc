// 1F1B with vocabulary parallelism, Algorithm 1: two passes per shard of the output layer, and two
// barriers before the first backward, each for an interval and a micro-batch's activations.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/vocabulary.h"

namespace bubblescope::schedules {
namespace {

/// Pass S, the logits, is F of a shard. Pass T, both gradients, is its B.
Schedule build_1f1b_vocab(const ScheduleRequest& request) {
  const std::int32_t p = request.shape.ranks;
  const auto add_ops = [p](PassOrder& order, std::int32_t rank, std::int32_t at) {
    const std::int32_t above = p - 1 - rank;
    order.add(forward(rank, at), {.forwards = -above});
    order.add(forward(p + rank, at), {.forwards = 1});
    order.add(backward(p + rank, at), {.intervals = 1, .forwards = 1, .outputs = 1});
    order.add(backward(rank, at),
              {.intervals = 2, .forwards = 1, .backwards = above, .outputs = 2});
  };
  return build_sharded(request, add_ops, {OpKind::kForward, OpKind::kBackward});
}

/// If B = 2 F and a shard's GEMM takes o, then T = m (3 F + 3 o) + (p-1) 3 F + the two barriers.
Claims claim_1f1b_vocab(const ScheduleRequest& request) {
  const Nanos p = request.shape.ranks, m = request.shape.microbatches;
  Claims claims;
  for (Nanos rank = 0; rank < p; ++rank) claims.peak_chunks.push_back(std::min(m, p - rank + 2));
  const std::optional<Nanos> o = find_closed_form_gemm_time(request);
  if (!o) return claims;
  const Nanos f = request.cost.forward;
  Nanos barriers = std::min<Nanos>(m - 1, 2) * std::min<Nanos>(p - 1, 2) * f;
  if (p >= 4 && m >= 4) barriers += clamp_to_zero(f - 3 * *o);
  claims.makespan = claims.max_span = 3 * m * (f + *o) + 3 * (p - 1) * f + barriers;
  return claims;
}

const ScheduleRegistrar one_f_one_b_vocab_registrar{[] {
  return ScheduleDef{
      .name = "1f1b-vocab",
      .summary =
          "1F1B, the output layer split over all ranks: two barriers, p + 2 micro-batches held",
      .source = "Yeung et al. 2024 (vocabulary parallelism), Algorithm 1",
      .implied_chunks = 1,
      .reads_costs = true,
      .splits_output_layer = true,
      .refuse = refuse_many_barriers,
      .build = build_1f1b_vocab,
      .claims = claim_1f1b_vocab,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
