// Builds one step of a pipeline from its observed ops: first the order, then the times, once the
// clocks of the ranks are aligned.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/settle_step.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// A step whose order is known, before its clocks are aligned.
struct DraftStep {
  MeasuredStep step;
  std::vector<std::vector<ObservedOp>> lanes;  ///< [rank], in order
  std::vector<ObservedOp> messages = {};
  Corrections corrections = {};  ///< of overlaps
};

/// From the first start to the last end of the ops ([rank]).
TimeSpan extent_of(const std::vector<std::vector<ObservedOp>>& lanes);

/// Builds the order of a step of so many ranks, with the times of its compute ops. Ranks without a
/// trace get stand-ins. Throws Error where the ops are not a whole step of a pipeline.
DraftStep order_step(const ObservedTrace& trace, std::string label, StepOps ops,
                     std::int32_t ranks);

/// The ranks whose first op needs a result of another rank.
std::set<std::int32_t> find_waiting_ranks(const DraftStep& draft);

/// Times the step. Its corrections come without those of the draft.
SettledStep time_step(DraftStep draft);

}  // namespace bubblescope::traces
