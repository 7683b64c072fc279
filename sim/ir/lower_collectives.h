// Lowers the UNSHARD, RESHARD and REDUCE_GRAD of posted lists to instructions in two lanes beside
// the compute lane, like FSDP's streams for gathering and for reducing.
//
//   lane "unshard", per rank, in posted order
//     UNSHARD      waits only for its lane: parameters are gathered ahead of time; or also for the
//                  compute op before it (`gathers_in_place`). The next op on its stage waits for it
//     RESHARD      waits for the last op on its stage before it and makes room for the next UNSHARD
//   lane "collective"
//     REDUCE_GRAD  waits for its stage's gradients that are posted before it
//     WAIT_REDUCE_GRAD  adds no instruction: the rank's next compute op waits for the stage's
//                  REDUCE_GRAD
#pragma once

#include <variant>

#include "sim/ir/program.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// Whether `posted` states when parameters are gathered or dropped, or when gradients are reduced.
bool posts_collectives(const Schedule& schedule);

/// Whether any rank posts an op of this kind.
bool posts_kind(const Schedule& schedule, OpKind kind);

/// `program` is the schedule's Program without these collectives. The cells must have passed
/// validate_collectives. LowerOptions say what `gathers_in_place` is.
std::variant<Program, Deadlock> lower_collectives(const ValidSchedule& schedule,
                                                  const Program& program, bool gathers_in_place);

}  // namespace bubblescope::inline sim
