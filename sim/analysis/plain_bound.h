// The lower bound of a plain step (plain_step.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/plain_stages.h"
#include "sim/analysis/plain_times.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The backwards of a step that are split into I and W.
struct SplitBackwards {
  std::optional<bool> all;  ///< where all micro-batches are alike, in their times as well
  std::vector<std::uint8_t> is_split = {};  ///< else: [stage * micro-batches + micro-batch]
};

/// lower_bound() of a plain step in which every micro-batch of a stage has an F and a backward: it
/// follows from the chains of its micro-batches. Where all are alike, one of them stands for all.
Nanos bound_plain_step(const Schedule& schedule, std::span<const PlainStage> stages,
                       const PlainTimes& times, const SplitBackwards& split);

}  // namespace bubblescope::inline sim
