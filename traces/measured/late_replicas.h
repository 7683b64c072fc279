// Finds replicas that begin their ops later than the others, which wait for them in collectives.
#pragma once

#include <optional>
#include <vector>

#include "sim/analysis/causes.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Returns the time that the steps would gain if every replica began its ops as soon after the
/// start of the step as the median replica does; collectives before the ops do not count. A step
/// starts with its mark, or where the replica's previous step has ended, so that clocks of replicas
/// need not agree. A replica comes to the collectives around its ops the later the less time it
/// spends in them. Returns nullopt without several replicas and such collectives, and where nothing
/// is gained.
std::optional<Cause> find_late_replicas(const std::vector<ObservedWork>& works,
                                        const std::vector<MeasuredStep>& steps);

}  // namespace bubblescope::traces
