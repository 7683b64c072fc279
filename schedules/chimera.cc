// Chimera: two pipelines in opposite directions, whose ops fill each other's gaps; every rank holds
// the weights of two stages. Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural
// Networks with Bidirectional Pipelines", 2021.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/slot_order.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_chimera(const ScheduleRequest& request) {
  std::vector<std::string> reasons;
  if (request.shape.ranks % 2 != 0)
    reasons.push_back("with an odd `pp` both directions use the same slot; make it even");
  if (request.shape.microbatches % 2 != 0)
    reasons.push_back(
        "half of the micro-batches go in each direction: `microbatches` must be even");
  return reasons;
}

Schedule build_chimera(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t half = shape.microbatches / 2;
  Schedule schedule;
  schedule.pipelines = 2;
  schedule.rank_of_stage = bidirectional_placement(shape.ranks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    const std::int32_t mirrored = shape.ranks - 1 - rank;
    SlotOrder order({.stages = shape.ranks, .group_size = shape.ranks / 2});
    order.add({rank, 0}, rank, half);
    order.add({shape.ranks + mirrored, half}, mirrored, half);
    schedule.order.push_back(std::move(order).take());
  }
  return schedule;
}

/// For m = kp and F <= B, with messages for p >= 4 and c <= F, B - F:
///   T = m (F + B) + (p-2) (F + k (B - F)) + (p-1 + 2k (p-2)) c
/// The slots are equal but B is longer than F, so that each of the k groups waits in the middle.
Claims claim_chimera(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const auto [forward, backward, input_grad, weight_grad, message] = *chunk_cost(request);
  const Nanos ranks = shape.ranks;
  const Nanos groups = shape.microbatches / ranks;
  Claims claims;
  if (shape.microbatches % shape.ranks != 0) return claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(shape.ranks / 2 + 1 + std::min(rank, shape.ranks - 1 - rank));
  const Nanos longer = backward - forward;
  const bool late = message > 0 && (ranks < 4 || message > std::min(forward, longer));
  if (longer < 0 || late) return claims;
  claims.makespan = shape.microbatches * (forward + backward) +
                    (ranks - 2) * (forward + groups * longer) +
                    (ranks - 1 + 2 * groups * (ranks - 2)) * message;
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar chimera_registrar{[] {
  return ScheduleDef{
      .name = "chimera",
      .summary =
          "two pipelines in opposite directions: with b from f to 2f less than two thirds of "
          "1F1B's bubble for m = p, less than all of it for m < p and m = 2p, and maybe more for "
          "others; twice the weights",
      .source = "Li and Hoefler 2021",
      .implied_chunks = 1,
      .is_at_most_1f1b =
          [](const ScheduleRequest& request) {
            return request.shape.ranks == 2 || has_few_groups(request);
          },
      .refuse = refuse_chimera,
      .build = build_chimera,
      .claims = claim_chimera,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
