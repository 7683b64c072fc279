// Asynchronous training (without flushes): its throughput once the pipeline is full, and the memory
// for its weight versions.
#pragma once

#include <optional>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// Time per micro-batch in the steady state, measured between ends of the first stage's last ops.
/// Covers the later half of the micro-batches that start to leave before the last one has entered,
/// in whole rounds of the replicas and of the micro-batches of an update.
std::optional<Nanos> find_period(const ValidSchedule& schedule, const Program& program,
                                 const Timeline& timeline);

/// Per rank; empty for schedules without weight versions. A version is held from its creation until
/// a newer one exists and no op reads it any more.
std::vector<WeightReport> account_for_weights(const Schedule& schedule, const MemoryModel& memory);

}  // namespace bubblescope::inline sim
