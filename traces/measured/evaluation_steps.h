// Evaluations among training steps: steps without backwards, and runs without them before or after
// the training of a step.
//
//   rank 0:  F0 F1 F0 F1 B0 B1   ->   F0 F1 B0 B1
//
// Backwards that compute nothing are none: PyTorch's schedules run an evaluation (eval()) with the
// order of a training step, and skip what its backwards would do.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "traces/measured/group_steps.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The time around its training in which a rank evaluated nothing, by rank.
using TrainingSpans = std::map<StepKey, std::map<std::int32_t, TimeSpan>>;

/// The evaluations that are left out.
struct Evaluations {
  std::set<std::int64_t> steps = {};  ///< the numbers of those that are nothing else
  TrainingSpans within = {};          ///< of those that train as well
};

/// Leaves evaluations out where other steps, or the rest of a step, have backwards. Within a step,
/// all stages must have evaluated equally many micro-batches before or after their training, which
/// runs some of these numbers again. Forwards that run again directly before their backwards are
/// recomputed, and no evaluation. Where micro-batches have no numbers, as many ops must remain as
/// another step has without any evaluation.
Evaluations remove_evaluations(std::map<StepKey, StepOps>& steps);

/// Leaves all backwards out, and their messages, if none of any step computes: all steps are
/// evaluations, of which the forwards remain. Returns whether they are.
bool remove_empty_backwards(std::map<StepKey, StepOps>& steps);

/// Returns the activities that do not belong to evaluations within steps. The marks of such steps,
/// which are too long, are left out. `rank_of_recorder` is that of the activities.
std::vector<ObservedActivity> without_evaluations(
    std::vector<ObservedActivity> activities, const TrainingSpans& within,
    const std::vector<std::int32_t>& rank_of_recorder);

/// Returns sentences such as "left out: steps 1, 3, as evaluations: ...".
std::vector<std::string> describe_evaluations(const Evaluations& evaluations);

}  // namespace bubblescope::traces
