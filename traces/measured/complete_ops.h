// Completes ops whose names do not tell their step, rank or stage. The order in which all ranks ran
// them tells it.
#pragma once

#include "traces/files/trace_format.h"
#include "traces/measured/join_pipelines.h"

namespace bubblescope::traces {

/// Assigns a step to every op that has none (has_step is false; its micro-batch number counts
/// through the whole file): a step ends where no micro-batch is in flight on any rank. Throws Error
/// where the ranks contradict each other, and for a single rank, whose last stage is empty after
/// every micro-batch.
ObservedTrace split_steps(ObservedTrace trace);

/// An activity without a step gets the step of the last op that its recorder started before it, or
/// of the recorder's first op; loading data belongs to the next op's step. Activities between the
/// first and the last op of their step are removed. Where the source says that activities may have
/// any purpose, those are removed that are no usual part of a step (usual_activities.h).
ObservedTrace place_activities(ObservedTrace trace);

/// Assigns ranks to recorders if no op states its stage and no recorder its rank: by the number of
/// forwards before the first backward, where it differs (1F1B), else by the time of the first
/// forward, if all ranks share one clock. Notes a doubt where neither decides, and a fault where
/// ranks are missing.
RankedTrace rank_recorders(ObservedTrace trace);

}  // namespace bubblescope::traces
