// The two ways to a Program without posts: both give the same one.
#pragma once

#include <optional>
#include <variant>

#include "sim/ir/lower.h"

namespace bubblescope {

/// For every schedule: collects instructions and what they wait for, then sorts them, or says in
/// which cycle they would wait for ever. Throws Error as lower() does.
std::variant<Program, Deadlock> lower_by_sorting(const ValidSchedule& schedule, Overlap overlap);

/// Three times as fast, for schedules of plain compute ops: each instruction is put where it
/// belongs as soon as all it waits for is placed. Nothing where the schedule has copies,
/// recomputation, joint forwards or fused pairs, and where it is not legal or deadlocks: the other
/// way says why.
std::optional<Program> lower_directly(const ValidSchedule& schedule, Overlap overlap);

}  // namespace bubblescope
