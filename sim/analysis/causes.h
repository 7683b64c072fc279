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

#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/cause.h"
#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/long_ops.h"
#include "sim/analysis/slowdown.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

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
