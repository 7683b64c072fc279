// Groups observed ops by pipeline rank, replica and step.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

using StepKey = std::pair<std::int32_t, std::int64_t>;  ///< replica, step

/// All ops of one step. Here an op's `recorder` is its pipeline rank.
struct StepOps {
  std::vector<ObservedOp> computes;
  std::vector<ObservedOp> messages;
};

/// Groups ops by step; steps without compute ops are left out.
std::map<StepKey, StepOps> group_by_step(std::vector<ObservedOp> ops, const RankNumbers& numbers);

/// Renumbers the micro-batches of every step from 0, whatever the trace calls them; ops without a
/// number are numbered in order. Messages that brought the input of an op get its number.
void number_microbatches(StepOps& ops);

}  // namespace bubblescope::traces
