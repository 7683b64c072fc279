// The brief report of a plain step in one walk over its orders, as plans need it by the thousands.
//
// The ops of a plain step (plain_stages.h) wait for at most one message each, so that one walk
// checks the orders, times them, accounts for idle time and counts memory, without a Program and a
// Timeline in between. Here all micro-batches take the same times:
//
//   every step   Schedule -> validate -> lower -> price -> simulate -> analyze_briefly
//   plain ones   Schedule -> report_plain_step
#pragma once

#include <optional>

#include "sim/analysis/analyze.h"
#include "sim/analysis/report.h"
#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// The report of analyze_briefly() for the dataflow lowering of a schedule with a plain frame; only
/// the op that reaches a memory peak is missing, because there is no Program to find it in. Accepts
/// orders that have not been validated. nullopt where the step is not plain, micro-batches differ,
/// the schedule not valid or deadlocked, or a sum out of range: the other way then finds the
/// report, or says what is wrong.
std::optional<BubbleReport> report_plain_step(const Schedule& schedule, const CostModel& costs,
                                              const MemoryModel& memory, LowerBound bound);

}  // namespace bubblescope::inline sim
