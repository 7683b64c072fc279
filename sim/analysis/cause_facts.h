// The facts of a cause of long steps: a type for every sort of cause.
//
// Reports name the kind alone, which several sorts may share: pauses lie between ops or within.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/cause_kind.h"
#include "sim/analysis/fit_noise.h"
#include "sim/analysis/slow_link.h"

namespace bubblescope::inline sim {

/// A worker that is slower than its stages in other replicas; or several that hide each other.
struct SlowWorkers {
  static constexpr CauseKind kKind = CauseKind::kWorker;
  std::vector<Worker> workers = {};  ///< the slowest first
  double factor = 1;                 ///< how many times as long they take, in the mean
  std::int64_t steps = 0;            ///< those in which each of them is over 2 % slower
  bool whole_replicas = false;       ///< whether these are all workers of their replicas
};

/// A worker that is slower in some steps than in its others.
struct WorkerSlowAtTimes {
  static constexpr CauseKind kKind = CauseKind::kWorker;
  Worker worker = {};
  double factor = 1;       ///< how many times as long it takes in these; if it grows, in the last
  std::int64_t steps = 0;  ///< those in which it is slow
  bool grows = false;      ///< whether it becomes slower from step to step
};

struct UnequalStage {
  static constexpr CauseKind kKind = CauseKind::kStage;
  std::int32_t stage = 0;
  std::int32_t rank = 0;  ///< which holds it
  /// The stages of that rank whose work is the same as that of `stage` within 5 %, `stage` itself
  /// included, in ascending order. Empty if `stage` has less work than others.
  std::vector<std::int32_t> stages = {};
  double factor = 1;  ///< its work relative to the mean stage's
};

struct UnequalMicrobatches {
  static constexpr CauseKind kKind = CauseKind::kSequenceLengths;
  double correlation = 0;  ///< of forward and backward times
};

/// Messages between ranks: all, or those of one link where these take most of the time.
struct ExposedMessages {
  static constexpr CauseKind kKind = CauseKind::kCommunication;
  std::optional<SlowLink> link = {};
};

/// Messages that no recording shows: the ops may as well start late.
struct UnseenMessages {
  static constexpr CauseKind kKind = CauseKind::kCommunication;
};

/// A collective outside the pipeline.
struct ExposedCollective {
  static constexpr CauseKind kKind = CauseKind::kCommunication;
  std::string name = {};
};

/// Many small gaps between ops.
struct LateLaunches {
  static constexpr CauseKind kKind = CauseKind::kLaunch;
  std::int32_t rank = 0;  ///< the one whose gaps are longest in total
  double share = 0;       ///< of that rank's time
};

/// A few long gaps between ops.
struct LongGaps {
  static constexpr CauseKind kKind = CauseKind::kPause;
  std::int32_t rank = 0;   ///< the one whose gaps are longest in total
  std::int64_t count = 0;  ///< in all steps
  std::int64_t steps = 0;  ///< those that have any
};

/// Pauses within ops.
struct InterruptedOps {
  static constexpr CauseKind kKind = CauseKind::kPause;
  std::int64_t count = 0;             ///< in all steps
  double factor = 1;                  ///< how many times as long they take
  std::optional<Worker> worker = {};  ///< the one that has nearly all; empty: several have them
  std::int64_t steps = 0;             ///< those in which that worker has any
};

/// Ops that take longer from some step on.
struct SlowerOps {
  static constexpr CauseKind kKind = CauseKind::kDrift;
  std::vector<Worker> workers = {};  ///< whose ops; empty: all
  double factor = 1;                 ///< how many times as long they take
  std::int64_t steps = 0;            ///< those before the change
};

/// Steps that are slow on most ranks.
struct SlowOnMostRanks {
  static constexpr CauseKind kKind = CauseKind::kSlowSteps;
  double factor = 1;       ///< how many times as long their ops take
  std::int64_t steps = 0;  ///< that are slow
  bool are_first = false;  ///< whether these are the first steps
};

/// Replicas that begin their ops later in the step than the earliest one does.
struct ReplicasThatBeginLate {
  static constexpr CauseKind kKind = CauseKind::kLateReplica;
  std::vector<std::int32_t> replicas = {};  ///< as the trace numbers them, in ascending order
  std::int64_t steps = 0;                   ///< those in which any is late
};

/// Ops of one kind and stage that differ without a pattern.
struct UnevenOps {
  static constexpr CauseKind kKind = CauseKind::kVariation;
};

}  // namespace bubblescope::inline sim
