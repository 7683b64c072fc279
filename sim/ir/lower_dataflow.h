// Ways to lower to a Program without posts. The first and the last return the same Program.
#pragma once

#include <optional>
#include <variant>

#include "sim/ir/lower.h"

namespace bubblescope::inline sim {

/// Works for every schedule: collects instructions and dependencies, then sorts them topologically
/// or returns a cycle. Throws Error as lower() does.
std::variant<Program, Deadlock> lower_by_sorting(const ValidSchedule& schedule, Overlap overlap);

/// The same with Overlap::kSerial, but as runtimes run overlapped pairs that post messages after
/// the whole pair: what its first op computes leaves when the second one has ended.
std::variant<Program, Deadlock> lower_with_late_results(const ValidSchedule& schedule);

/// Three times as fast, for schedules of plain compute ops: places each instruction as soon as all
/// of its dependencies are placed. Empty if the schedule has copies, recomputation, fused forwards,
/// fused pairs, after edges or a stage graph, is not legal, or deadlocks; lower_by_sorting() then
/// says why.
std::optional<Program> lower_directly(const ValidSchedule& schedule, Overlap overlap);

}  // namespace bubblescope::inline sim
