// Finds replicas that begin their ops later than the others, which wait for them in collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/analysis/causes.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// The time that a step would gain if no replica began later than the earliest one.
struct LateStart {
  Nanos saves = 0;
  std::set<std::int32_t> replicas;  ///< that begin late
};

struct LateReplicas {
  /// [replica, step]: by how much later than the earliest replica it begins its ops; empty without
  /// several replicas and collectives around their ops.
  std::map<std::pair<std::int32_t, std::int64_t>, Nanos> delays;
  std::map<std::int64_t, LateStart> steps;  ///< those whose start is known

  /// The cause in the steps with these numbers; empty where nothing is gained.
  std::optional<Cause> find_cause(const std::vector<std::int64_t>& numbers) const;
};

/// Finds the time that every step would gain if all replicas began their ops as soon after its
/// start as the earliest one does; collectives before the ops do not count. A step starts with its
/// mark, or where the replica's previous step has ended, so that clocks of replicas need not agree.
/// A replica comes to the collectives around its ops the later the less time it spends in them.
LateReplicas find_late_replicas(const std::vector<ObservedWork>& works,
                                const std::vector<MeasuredStep>& steps);

}  // namespace bubblescope::traces
