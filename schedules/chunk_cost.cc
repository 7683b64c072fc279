// Divides a rank's share into chunks and slices.
#include "schedules/chunk_cost.h"

namespace bubblescope::schedules {

std::optional<ChunkCost> chunk_cost(const ScheduleRequest& request) {
  const UniformCost& cost = request.cost;
  const Nanos chunks = cost.per == UniformCost::Per::kRank ? request.shape.chunks : 1;
  const Nanos slices = cost.per == UniformCost::Per::kSlice ? 1 : request.shape.slices;
  const Nanos parts = chunks * slices;
  ChunkCost chunk{cost.forward, cost.full_backward(), cost.input_grad, cost.weight_grad, 0};
  for (Nanos* share : {&chunk.forward, &chunk.backward, &chunk.input_grad, &chunk.weight_grad}) {
    if (*share % parts != 0) return std::nullopt;
    *share /= parts;
  }
  if (request.shape.ranks > 1) chunk.message = cost.message;
  return chunk;
}

}  // namespace bubblescope::schedules
