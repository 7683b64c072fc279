// Costs of measured workers for a schedule that places stages otherwise.
//
// Data-parallel replicas have the same stages, so how long one takes beside the others is the speed
// of its workers, a rank of a replica each. In another schedule a rank keeps its speed, not its
// stages: each stage takes its usual time, times that of the rank that runs it there. With one
// replica a slow rank cannot be told from a large stage.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// Returns the table for `schedule`, with the replicas' times of its stages. They do not change if
/// there is one replica, if the numbers of ranks differ, if stages stay on their ranks, or if an
/// entry is not one stage of one rank. Where the output layer is split over the ranks, the stages
/// besides its shards are cut and joined for the schedule (restage.h).
CostTable keep_workers(const CostTable& table, const Schedule& measured, const Schedule& schedule);

}  // namespace bubblescope::inline sim
