// Common parts of the zero-bubble paper's schedules with split backwards. Qi et al., "Zero Bubble
// Pipeline Parallelism", 2024.
#pragma once

#include <optional>

#include "schedules/chunk_cost.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The paper's handcrafted schedules: rank r runs height (p-1-r) warm-up forwards, then F and I
/// take turns, and each W is height r I's late, so that every rank holds height (p-1) + 1
/// micro-batches. Height 1 is ZB-H1, height 2 is ZB-H2.
Schedule build_zero_bubble(const ScheduleRequest& request, std::int32_t height);

/// Returns the peak of every rank in micro-batches: min(m, height (p-1) + 1).
std::vector<std::int64_t> count_zero_bubble_peaks(const Shape& shape, std::int32_t height);

/// The increase per rank, after the first, of the makespan and the longest span.
struct RankBubble {
  Nanos makespan = 0;
  Nanos span = 0;
};

/// The bubble if a rank's first I comes p-1-r turns after its first F:
///   span = I + 2c + [F + 2c - W]+,  makespan = max(F + 3c, span)
/// Empty unless m > p and 2c <= W (without messages m >= p suffices): otherwise other waits
/// dominate.
std::optional<RankBubble> compute_height_one_bubble(const Shape& shape, const ChunkCost& cost);

}  // namespace bubblescope::schedules
