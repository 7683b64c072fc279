// Receives as late as a runtime that blocks on them would like them.
#pragma once

#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// PyTorch's deferral: each RECV of the posted lists moves down to just before the op that needs
/// it; but before a SEND to a higher rank come all RECVs from that rank that were held back so far.
/// Throws Error for a RECV that no later op needs.
std::vector<RankOrder> defer_receives(const ValidSchedule& schedule,
                                      const std::vector<RankOrder>& posted);

}  // namespace bubblescope
