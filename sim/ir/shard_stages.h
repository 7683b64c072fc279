// A rank's order with its stages' parameters sharded, as PyTorch's lowering posts it for FSDP.
//
//   0UNSHARD 2UNSHARD 0F0 0F1 2F0 2F1 2B0 2B1 2REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD 0RESHARD 2RESHARD
#pragma once

#include <cstdint>

#include "sim/ir/pytorch_release.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// How many stages of a rank are gathered at once at most (PyTorch's max_active_stages).
inline constexpr std::size_t kGatheredStages = 3;

/// PyTorch's _add_unshard_reshard: before an op, what none of the next kGatheredStages different
/// stages needs is dropped, and what they need is gathered, in their order. Everything is dropped
/// at the end. The releases drop in different orders: the first as Python walks through a set, the
/// others what was gathered first.
RankOrder add_unshards(const RankOrder& order, PytorchRelease release);

/// PyTorch's _add_reduce_grad: behind the last weight gradient of a stage.
RankOrder add_reductions(const RankOrder& order);

/// False where two pipelines' replicas reduce together, or every update by itself: then reductions
/// are no affair of one rank's cells, and left to --grad-reduction.
bool reduces_by_rank(const Schedule& schedule);

/// Both, as `posted` of the schedule, reductions only where they are by rank; its idle cells are
/// left out, as there. Without the waits that follow since 2.15 (add_reduction_waits). The result
/// is validated again.
ValidSchedule shard_stages(ValidSchedule schedule, PytorchRelease release = PytorchRelease::k2_15);

}  // namespace bubblescope
