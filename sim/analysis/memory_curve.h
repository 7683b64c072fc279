// Memory over a step: how high every rank's memory climbs, and at which op.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// The peak of every rank, from the order of its ops: what an op takes, it takes when it starts;
/// what it gives back, it gives back when it ends.
std::vector<Peak> find_peaks(const Schedule& schedule, const Program& program,
                             const MemoryModel& memory);

/// Half chunks held on each rank right after each instruction's change (0 for messages): the curve
/// that traces draw. Parallel to Program::instructions.
std::vector<std::int64_t> held_half_chunks(const Program& program, Release release);

}  // namespace bubblescope
