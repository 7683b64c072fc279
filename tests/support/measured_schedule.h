// Properties of schedules, computed without the analysis under test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/program.h"
#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::tests {

struct Times {
  Nanos makespan = 0;
  Nanos max_span = 0;
};

/// The lowered Program. Throws Error with the cycle when there is a deadlock.
Program lower_or_throw(const Schedule& schedule, Overlap overlap = Overlap::kAtomic);

/// The schedule of this name for uniform costs.
Schedule build_for_costs(const char* name, std::int32_t ranks, std::int32_t microbatches,
                         const UniformCost& cost);

Times times_of(const Program& program, const Timeline& timeline);

/// Lowers, prices and simulates.
Times simulate_times(const Schedule& schedule, const UniformCost& cost,
                     Overlap overlap = Overlap::kAtomic);

/// The peak of each rank: the maximum running sum of its ops' memory changes.
std::vector<std::int64_t> walk_peaks(const Schedule& schedule, const MemoryDelta& delta);

/// A rank's ops with spaces between, overlapped pairs as `(0F7;7B3)OVERLAP_F_B`.
std::string order_text(const RankOrder& ops);

}  // namespace bubblescope::tests
