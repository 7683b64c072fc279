// Applies the moves of a Config, one after the other.
#include "sim/predict/moves.h"

#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/recompute.h"
#include "sim/ir/shard_stages.h"

namespace bubblescope::inline sim {

namespace {

ValidSchedule wait_for_reductions(ValidSchedule given) {
  Schedule schedule = std::move(given).take();
  for (RankOrder& cells : schedule.posted) cells = add_reduction_waits(cells);
  return require_valid(std::move(schedule));
}

ValidSchedule apply_sharding(ValidSchedule schedule, const Sharding& sharding) {
  if (posts_messages(schedule) || posts_collectives(schedule))
    throw Error(schedule->name +
                " posts its own messages or collectives; its stages cannot be sharded");
  schedule = shard_stages(std::move(schedule), sharding.release, sharding.lookahead);
  if (sharding.waits_for_reductions) return wait_for_reductions(std::move(schedule));
  return sharding.release == PytorchRelease::kFrom215 ? take_turns_of_215(std::move(schedule))
                                                      : schedule;
}

}  // namespace

ValidSchedule apply_moves(ValidSchedule schedule, const Moves& moves) {
  if (!moves.recompute.empty()) schedule = with_recompute(std::move(schedule), moves.recompute);
  if (moves.offload) schedule = with_offload(std::move(schedule), *moves.offload);
  if (moves.sharding) return apply_sharding(std::move(schedule), *moves.sharding);
  return moves.takes_turns_of_215 ? take_turns_of_215(std::move(schedule)) : schedule;
}

}  // namespace bubblescope::inline sim
