// Slow workers as causes: in all steps, or in some only.
#pragma once

#include "sim/analysis/cause_evidence.h"
#include "sim/analysis/cause_list.h"

namespace bubblescope::inline sim {

/// Adds the slow workers. Unequal stages and lengths are sought without all of them, however little
/// they save.
void add_slow_workers(CauseList& causes, const CauseEvidence& evidence);

/// Adds those that are slow in some steps only: medians over the steps do not show them.
void add_workers_slow_at_times(CauseList& causes, const CauseEvidence& evidence);

}  // namespace bubblescope::inline sim
