// Finds replicas that begin their ops later than the others, which wait for them in collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/analysis/causes.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

struct LateReplicas {
  std::optional<Cause> cause;  ///< empty where nothing is gained
  /// [replica, step]: by how much later than the first replica it begins its ops; empty without
  /// several replicas and collectives around their ops.
  std::map<std::pair<std::int32_t, std::int64_t>, Nanos> delays;
};

/// The cause saves the time that the steps would gain if every replica began its ops as soon after
/// the start of the step as the first one does; collectives before the ops do not count. A
/// step starts with its mark, or where the replica's previous step has ended, so that clocks of
/// replicas need not agree. A replica comes to the collectives around its ops the later the less
/// time it spends in them.
LateReplicas find_late_replicas(const std::vector<ObservedWork>& works,
                                const std::vector<MeasuredStep>& steps);

}  // namespace bubblescope::traces
