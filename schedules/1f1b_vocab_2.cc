// 1F1B with vocabulary parallelism, Algorithm 2: a shard computes its part of the input gradient
// before the barrier, up to a factor that the barrier brings, so that one barrier is enough.
#include <algorithm>

#include "schedules/vocabulary.h"

namespace bubblescope::schedules {
namespace {

/// Pass S, the logits and the input gradient, is F and I of a shard. Pass T is its W.
Schedule build_1f1b_vocab_2(const ScheduleRequest& request) {
  const std::int32_t p = request.shape.ranks;
  const auto add_ops = [p](PassOrder& order, std::int32_t rank, std::int32_t at) {
    const std::int32_t above = p - 1 - rank;
    order.add(forward(rank, at), {.forwards = -above});
    order.add(forward(p + rank, at), {.forwards = 1});
    order.add(input_grad(p + rank, at), {.forwards = 1});
    order.add(backward(rank, at),
              {.intervals = 1, .forwards = 1, .backwards = above, .outputs = 1});
    order.add(weight_grad(p + rank, at),
              {.intervals = 1, .forwards = 1, .backwards = 1, .outputs = 1});
  };
  return build_sharded(request, add_ops, {OpKind::kInputGrad, OpKind::kWeightGrad});
}

/// If B = 2 F and a shard's GEMM takes o, then T = m (3 F + 3 o) + (p-1) 3 F + the barrier.
Claims claim_1f1b_vocab_2(const ScheduleRequest& request) {
  const Nanos p = request.shape.ranks, m = request.shape.microbatches;
  Claims claims;
  for (Nanos rank = 0; rank < p; ++rank) claims.peak_chunks.push_back(std::min(m, p - rank + 1));
  const std::optional<Nanos> o = find_closed_form_gemm_time(request);
  if (!o) return claims;
  const Nanos f = request.cost.forward;
  Nanos barrier = (m == 1 ? 0 : std::min<Nanos>(p - 1, 2) * f) - std::min(*o, 2 * f);
  if (p == 1) barrier = 0;
  if (p >= 3 && m >= 3) barrier = std::max(2 * f - *o, f);
  claims.makespan = claims.max_span = 3 * m * (f + *o) + 3 * (p - 1) * f + barrier;
  return claims;
}

const ScheduleRegistrar one_f_one_b_vocab_2_registrar{[] {
  return ScheduleDef{
      .name = "1f1b-vocab-2",
      .summary =
          "1F1B, the output layer split over all ranks: one barrier, p + 1 micro-batches held",
      .source = "Yeung et al. 2024 (vocabulary parallelism), Algorithm 2",
      .implied_chunks = 1,
      .reads_costs = true,
      .splits_output_layer = true,
      .refuse = refuse_many_barriers,
      .build = build_1f1b_vocab_2,
      .claims = claim_1f1b_vocab_2,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
