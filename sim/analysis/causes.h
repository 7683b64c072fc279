// Ranks the causes of long steps by the time that removing each of them would save.
//
// Every measured step is replayed with one cause removed: some ops get other durations, all others
// keep theirs. The step ends with the slowest of its data-parallel replicas, and replicas wait for
// each other in the collectives around the ops where these are known (sim/analysis/
// coupled_replay.h). All causes but gaps are sought in steps whose pauses within ops are shortened,
// and stages and lengths in steps whose slow workers are as fast as others, so that neither is an
// unequal stage as well. Causes may still overlap: removing two at once then saves less than the
// sum. Where work can only be moved to other ops, the total stays the same:
//   worker            A worker is slower than its stage in other replicas. Its ops speed up by the
//                     ratio of the medians, if that is more than chance explains
//                     (sim/analysis/chance.h). With one replica, a slow rank cannot be told from a
//                     large stage, unless it is slow in some steps only
//                     (sim/analysis/slow_steps.h). Several that hide each other, such as all of a
//                     replica, are one cause.
//   stage             A stage has over 2 % more or less work than the mean stage, beyond chance.
//                     Each op gets the mean duration of its kind and micro-batch over all stages.
//   sequence lengths  Some micro-batches have more work than others. Each op gets the mean duration
//                     of its stage and kind over all micro-batches and replicas. This counts as a
//                     cause only if forward and backward times of micro-batches correlate, on
//                     several stages (sim/analysis/length_correlation.h).
//   communication     Messages between ranks take no time; or those of a slow link take the usual
//                     time, where that saves half as much; or, outside the pipeline, a collective
//                     takes none.
//   launch, pause     Ops start as soon as they could: without many small gaps between them, or
//                     without a few long ones. Pauses within ops are shortened to the usual time of
//                     their stage, kind and micro-batch (sim/analysis/pauses.h). Long ops count if
//                     they are rare, if nearly all of them are a single worker's, or if they are
//                     scattered (sim/analysis/long_ops.h).
//   variation         Ops of one kind and stage do not all take as long, unless unequal
//                     micro-batches are a cause. Each gets their mean duration.
//   slow steps        All ops of some steps take longer than in the others. Each worker gets the
//                     time that it has in those: the first steps are slow while things warm up, or
//                     single ones are (sim/analysis/slow_steps.h).
//   late replica      A replica begins its ops late (sim/analysis/late_replicas.h).
//   drift             The ops that changed, of all workers or of some, take as long in the later
//                     steps as in the earlier ones, where the speed has changed for good
//                     (find_drift).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/fit_noise.h"
#include "sim/analysis/long_ops.h"
#include "sim/analysis/slow_link.h"
#include "sim/analysis/slowdown.h"

namespace bubblescope::inline sim {

enum class CauseKind : std::uint8_t {
  kWorker,
  kStage,
  kSequenceLengths,
  kCommunication,
  kLaunch,
  kPause,
  kDrift,
  kSlowSteps,
  kLateReplica,
  kVariation,
};

struct Cause {
  CauseKind kind = CauseKind::kStage;
  std::int32_t replica = 0;  ///< the worker's, counted from 0
  std::int32_t rank = 0;     ///< the worker's or stage's; for gaps, the one with the longest
  std::int32_t stage = 0;    ///< the stage whose work differs
  /// The stages of that rank which have as much, but for 5 %, in ascending order, with `stage`.
  std::vector<std::int32_t> stages = {};
  /// For a worker, its time relative to its stage in other replicas; for a stage, its work relative
  /// to the mean stage; for sequence lengths, the correlation of forward and backward times; for
  /// launches, the gaps' fraction of the rank's time; for pauses within ops and for a drift, how
  /// many times as long ops take.
  double factor = 1;
  /// Number of steps in which the worker was over 2 % slower; for a drift, the steps before it; for
  /// pauses, the steps that have any; for slow steps, how many are slow.
  std::int64_t steps = 0;
  std::int64_t all_steps = 0;  ///< for a worker and for slow steps, how many steps there are
  bool is_at_times = false;    ///< a worker is slow relative to its own other steps, not to others
  bool grows = false;          ///< a worker becomes slower from step to step; `factor` is the last
  bool are_first = false;      ///< whether slow steps are the first ones
  /// For a drift, the workers that have changed; empty: all. For pauses within ops, the worker that
  /// has nearly all of them; empty: several have. For slow workers that are one cause, and for
  /// late replicas, all of them.
  std::vector<Worker> changed = {};
  bool whole_replicas = false;  ///< whether these are all workers of their replicas
  bool has_replicas = false;    ///< whether the job has several
  std::int64_t count = 0;       ///< of pauses, in all steps
  bool within_ops = false;      ///< whether pauses are long ops, not gaps between ops
  bool is_unseen = false;       ///< of messages that no recording shows: ops may as well start late
  std::optional<SlowLink> link = {};     ///< of messages, if most of the time is a single link's
  std::vector<CauseKind> presumed = {};  ///< the causes without which its savings were found
  std::string collective = {};           ///< of communication outside the pipeline; empty: messages
  Nanos saves = 0;                       ///< time saved in the mean step, above 0
  std::optional<Nanos> left = {};  ///< what the mean replayed step takes without it, if replayed
  Nanos saves_p5 = 0;              ///< quantiles over the steps
  Nanos saves_p95 = 0;
};

struct CauseReport {
  Nanos replayed = 0;         ///< mean time of the replayed steps, the baseline of `saves`
  std::vector<Cause> causes;  ///< sorted by `saves`, the largest first
  Nanos saved_together = 0;   ///< time saved in the mean step without those in the pipeline
  bool is_known = true;       ///< false if the trace does not show how long messages travel
  std::optional<ManyLongOps> many_long_ops = {};
};

/// Requires at least one step. All steps must have the same number of replicas, which run the same
/// stages. `activities`: per step, what runs besides the ops; empty where that is not known.
CauseReport find_causes(std::span<const ReplicatedStep> steps,
                        std::span<const std::vector<OuterActivity>> activities = {});

/// The collectives around the ops, where whole steps were replayed: what hiding each would save.
std::vector<Cause> find_exposed_activities(const SlowdownReport& slowdown);

}  // namespace bubblescope::inline sim
