// Finds when the replicas of a job began their ops in each step.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/analysis/late_replicas.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// By step, where its start is known on all replicas, and all have collectives around their ops. A
/// step starts with its mark, or where the replica's previous step has ended, so that clocks of
/// replicas need not agree.
std::map<std::int64_t, StepStarts> find_replica_starts(
    const std::vector<ObservedActivity>& activities, const std::vector<MeasuredStep>& measured);

}  // namespace bubblescope::traces
