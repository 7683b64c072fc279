// The complete report of a plain step (plain_stages.h) whose micro-batches may take different
// times. It keeps the end of every op and finds the rest when it is asked for: a Program with its
// Timeline would take eight times the memory, and most of the time to fill it.
#pragma once

#include <optional>

#include "sim/analysis/choose_ranks.h"
#include "sim/analysis/report.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// A report, and the part of the step that it names: the critical path, the ops that reach memory
/// peaks, all ops of the chosen ranks, and for each stage the first op of each kind with its
/// message. Instructions are by rank, in the order of their lanes, and have no dependencies.
struct PlainDetails {
  BubbleReport report;
  Program program;
  Timeline timeline;
};

/// Does the work of analyze() for the dataflow lowering of a plain step, without slack. nullopt
/// where the step is not plain, an op takes no time, something counts bytes of messages or weights,
/// or a sum may leave its range.
std::optional<PlainDetails> detail_plain_step(const ValidSchedule& schedule, const CostModel& costs,
                                              const MemoryModel& memory,
                                              const ChooseRanks& choose_ranks);

}  // namespace bubblescope::inline sim
