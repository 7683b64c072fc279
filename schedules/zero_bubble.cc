// Builds the handcrafted zero-bubble schedules by one rule.
#include "schedules/zero_bubble.h"

#include <algorithm>

#include "schedules/rank_order.h"

namespace bubblescope::schedules {

Schedule build_zero_bubble(const ScheduleRequest& request, std::int32_t height) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(alternate_split(visits_of_stage(rank, shape.microbatches),
                                             height * (shape.ranks - 1 - rank), height * rank));
  return schedule;
}

std::vector<std::int64_t> count_zero_bubble_peaks(const Shape& shape, std::int32_t height) {
  const std::int64_t held = std::int64_t{height} * (shape.ranks - 1) + 1;
  return std::vector<std::int64_t>(shape.ranks, std::min<std::int64_t>(shape.microbatches, held));
}

std::optional<RankBubble> compute_height_one_bubble(const Shape& shape, const ChunkCost& cost) {
  const auto [forward, backward, input_grad, weight_grad, message] = cost;
  const std::int32_t min_microbatches = message == 0 ? shape.ranks : shape.ranks + 1;
  if (shape.microbatches < min_microbatches || 2 * message > weight_grad) return std::nullopt;
  const Nanos round_trip = 2 * message;
  RankBubble bubble;
  bubble.span = input_grad + round_trip + clamp_to_zero(forward + round_trip - weight_grad);
  bubble.makespan = std::max(forward + 3 * message, bubble.span);
  return bubble;
}

}  // namespace bubblescope::schedules
