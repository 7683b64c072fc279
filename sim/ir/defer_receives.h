// Deferred receives: each RECV is posted as late as possible, for runtimes that block on receives.
#pragma once

#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// PyTorch's deferral: moves each RECV of the posted lists down to just before the op that needs
/// it. A SEND to a higher rank is preceded by all RECVs from that rank that are still deferred.
/// Throws Error for a RECV that no later op needs.
std::vector<RankOrder> defer_receives(const ValidSchedule& schedule,
                                      const std::vector<RankOrder>& posted);

}  // namespace bubblescope::inline sim
