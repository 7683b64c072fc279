// The UNSHARD, RESHARD and REDUCE_GRAD of posted lists as instructions, in two lanes beside the
// compute lane, as FSDP has a stream for gathering and one for reducing.
//
//   lane "unshard", per rank, in posted order
//     UNSHARD      waits for nothing but its lane: parameters are gathered ahead of time. The next
//                  op on its stage waits for it
//     RESHARD      waits for the last op on its stage before it; so the next UNSHARD finds room
//   lane "collective"
//     REDUCE_GRAD  waits for its stage's gradients that are posted before it
//     WAIT_REDUCE_GRAD  no instruction: the rank's next compute op waits for the stage's
//     REDUCE_GRAD
#pragma once

#include <variant>

#include "sim/ir/program.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// Whether `posted` says when parameters are gathered or dropped, or gradients reduced.
bool posts_collectives(const Schedule& schedule);

/// `program` is what lower() makes of the schedule otherwise. The cells must be sound
/// (validate_collectives).
std::variant<Program, Deadlock> lower_collectives(const ValidSchedule& schedule,
                                                  const Program& program);

}  // namespace bubblescope
