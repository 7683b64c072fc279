// Finds replicas that begin their ops later than the others, which wait for them in collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/analysis/cause.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The start of one replica in one step.
struct ReplicaStart {
  Nanos delay = 0;           ///< from the start of its step to its ops, without collectives
  Nanos in_collectives = 0;  ///< around its ops; the less, the later it comes to them
  Nanos length = 0;          ///< of its step
};

/// By replica.
using StepStarts = std::map<std::int32_t, ReplicaStart>;

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

  /// Returns the cause in the steps with these numbers; nullopt where removing it gains nothing.
  std::optional<Cause> find_cause(const std::vector<std::int64_t>& numbers) const;
};

/// Finds the time that every step would gain if all replicas began their ops as soon after its
/// start as the earliest one does. `steps` are those whose start is known, by number.
LateReplicas find_late_replicas(const std::map<std::int64_t, StepStarts>& steps);

}  // namespace bubblescope::inline sim
