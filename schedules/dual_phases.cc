// Lists the eight phases of DualPipe.
#include "schedules/dual_phases.h"

#include <utility>

namespace bubblescope::schedules {
namespace {

/// Backwards of both streams in turn: full ones first, then input gradients only.
void add_turns(TwoStreamOrder& order, std::int32_t turns) {
  order.repeat(turns / 2, "B1 B0");
  order.repeat(turns % 2, "B1 I0");
  order.repeat(turns / 2, "I1 I0");
}

}  // namespace

RankOrder make_dual_order(const DualRank& rank) {
  const std::int32_t nearer = rank.position + 1;
  const std::int32_t farther = rank.depth - nearer;
  const bool innermost = farther == 0;
  TwoStreamOrder order(rank.streams, std::int64_t{6} * rank.microbatches);
  order.repeat(2 * farther, "F0");
  order.repeat(nearer, "F0 F1");
  order.repeat(farther, "I1 W F1");
  const std::int32_t steady = rank.microbatches - 2 * rank.depth + nearer;
  if (innermost) order.repeat(1, "F0 B1 F1&B0");
  order.repeat(innermost ? steady - 1 : steady, "F0&B1 F1&B0");
  order.repeat(farther, "B1 F1&B0");
  add_turns(order, nearer);
  order.repeat(farther, "W I0");
  order.repeat(nearer, "W");
  return std::move(order).take();
}

std::optional<Nanos> compute_dual_bubble(const ChunkCost& cost, std::int32_t depth) {
  const bool split_is_whole = cost.backward == cost.input_grad + cost.weight_grad;
  if (cost.input_grad > cost.forward || !split_is_whole || cost.message > 0) return std::nullopt;
  return (depth - 1) * (2 * cost.forward + clamp_to_zero(cost.input_grad - cost.weight_grad));
}

}  // namespace bubblescope::schedules
