// Costs for any number of stages: those of the first stage, of each between, and of the last one,
// of a model whose stages have equally many layers.
#pragma once

#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// Returns the kinds of these stages: the first, the mean of those between, and the last; empty if
/// there are none between. What some stages between lack is left out of their mean.
std::vector<StageEntry> make_stage_kinds(const std::vector<StageEntry>& stages);

/// Returns the table with an entry per stage of the schedule's pipeline. Where `stages` has another
/// number of entries, they come from `stage_kinds`; without those, or for a single stage, divisible
/// stages are cut and joined (restage.h), and other tables stay as they are.
CostTable fit_stages(CostTable table, const Schedule& schedule);

}  // namespace bubblescope::inline sim
