// The lower bound of a plain step (plain_step.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/plain_stages.h"
#include "sim/analysis/plain_times.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The backwards of a step that are split into I and W.
struct SplitBackwards {
  /// [stage * micro-batches + micro-batch]. One entry: micro-batches are all alike.
  std::vector<std::uint8_t> is_split;

  bool are_alike() const { return is_split.size() == 1; }
};

/// lower_bound() of a plain step in which every micro-batch of a stage has an F and a backward: it
/// follows from the chains of its micro-batches. Where all are alike, one of them stands for all.
Nanos bound_plain_step(const Schedule& schedule, std::span<const PlainStage> stages,
                       const PlainTimes& times, const SplitBackwards& split);

}  // namespace bubblescope::inline sim
