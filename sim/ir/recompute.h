// Recomputation: stages keep less than their backwards need and make the rest again.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// What "none", "selective" and "full" name; nothing for any other word.
std::optional<Recompute> find_recompute(std::string_view word);

/// Puts an R just before every B or I of the stages that recompute: before both ops of an
/// overlapped pair. An R needs only its own forward, so a rank that waits for a gradient recomputes
/// meanwhile. For `full` on rank 0 of 1F1B:
///   0F0 0F1 0R0 0B0 0F2 0R1 0B1 0R2 0B2
/// `of_stage` has an entry per stage, or one per stage of a pipeline, whose replicas then do the
/// same, or a single one for all.
/// The result is validated again. Throws Error where the entries do not fit, and where the schedule
/// recomputes already or has no backward.
ValidSchedule with_recompute(ValidSchedule schedule, const std::vector<Recompute>& of_stage);

/// Whether the schedule has an R of the stage.
bool recomputes(const Schedule& schedule, std::int32_t stage);

}  // namespace bubblescope
