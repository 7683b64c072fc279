// A cause of long steps, and what the steps gain without it. How causes are found is told in
// sim/analysis/causes.h.
//
//   const Cause cause{UnequalStage{.stage = 3, .rank = 3, .factor = 1.61}};
//   cause.kind();                               // CauseKind::kStage
//   std::get<UnequalStage>(cause.facts).factor  // 1.61
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "sim/analysis/cause_facts.h"
#include "sim/analysis/cause_kind.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

using CauseFacts =
    std::variant<SlowWorkers, WorkerSlowAtTimes, UnequalStage, UnequalMicrobatches, ExposedMessages,
                 UnseenMessages, ExposedCollective, LateLaunches, LongGaps, InterruptedOps,
                 SlowerOps, SlowOnMostRanks, ReplicasThatBeginLate, UnevenOps>;

struct Cause {
  CauseFacts facts = {};
  Nanos saves = 0;                 ///< time saved in the mean step, above 0
  std::optional<Nanos> left = {};  ///< what the mean replayed step takes without it, if replayed
  Nanos saves_p5 = 0;              ///< quantiles over the steps
  Nanos saves_p95 = 0;
  bool has_replicas = false;  ///< whether the job has several
  /// How many steps there are; for late replicas, how many have a known start.
  std::int64_t all_steps = 0;
  std::vector<CauseKind> presumed = {};  ///< the causes without which its savings were found

  CauseKind kind() const {
    return std::visit([](const auto& one) { return one.kKind; }, facts);
  }
  /// Whether removing it makes the pipeline itself shorter, not what is around it.
  bool is_within_pipeline() const {
    return !std::holds_alternative<ExposedCollective>(facts) &&
           !std::holds_alternative<ReplicasThatBeginLate>(facts);
  }
};

/// Returns the cause with its replicas numbered as in the trace, instead of by their positions.
/// Replicas that begin late are numbered so already.
Cause with_replica_numbers(Cause cause, std::span<const std::int32_t> numbers);

}  // namespace bubblescope::inline sim
