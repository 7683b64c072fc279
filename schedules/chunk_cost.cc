// Dividing a rank's share.
#include "schedules/chunk_cost.h"

namespace bubblescope {

std::optional<ChunkCost> chunk_cost(const ScheduleRequest& request) {
  const UniformCost& cost = request.cost;
  const bool per_rank = cost.per == UniformCost::Per::kRank;
  const Nanos parts = per_rank ? request.shape.chunks : 1;
  ChunkCost chunk{cost.forward, cost.full_backward(), cost.input_grad, cost.weight_grad, 0};
  for (Nanos* share : {&chunk.forward, &chunk.backward, &chunk.input_grad, &chunk.weight_grad}) {
    if (*share % parts != 0) return std::nullopt;
    *share /= parts;
  }
  if (request.shape.ranks > 1) chunk.message = cost.message;
  return chunk;
}

}  // namespace bubblescope
