// Recomputation: a stage saves less than its backward needs and recomputes the rest.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// The choice that "none", "selective" or "full" names; empty for any other word.
std::optional<Recompute> find_recompute(std::string_view word);

/// Adds an R just before every B or I of the stages that recompute; for an overlapped pair, before
/// both ops. An R needs only its own forward, so a rank that waits for a gradient recomputes
/// meanwhile. For `full` on rank 0 of 1F1B:
///   0F0 0F1 0R0 0B0 0F2 0R1 0B1 0R2 0B2
/// `of_stage` has an entry per stage, or per stage of one pipeline (whose replicas then do the
/// same), or a single entry for all stages. The result is validated again. Throws Error if the
/// number of entries does not fit, or if the schedule recomputes already or has no backward.
ValidSchedule with_recompute(ValidSchedule schedule, const std::vector<Recompute>& of_stage);

/// Whether the schedule recomputes this stage.
bool recomputes(const Schedule& schedule, std::int32_t stage);

}  // namespace bubblescope::inline sim
