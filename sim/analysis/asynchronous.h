// Training without flushes: how fast the pipeline runs once it is full, and what its weights cost.
#pragma once

#include <optional>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// Time per micro-batch in the steady state, from the ends of the first stage's last ops: over the
/// later half of what begins to leave by the time that the last micro-batch has entered, in whole
/// rounds of the replicas and of the micro-batches of an update.
std::optional<Nanos> find_period(const ValidSchedule& schedule, const Program& program,
                                 const Timeline& timeline);

/// Per rank; empty for schedules that name no weight versions. A version is held from when it is
/// made until a newer one is there and no op reads it any more.
std::vector<WeightReport> account_for_weights(const Schedule& schedule, const MemoryModel& memory);

}  // namespace bubblescope
