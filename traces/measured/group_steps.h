// Groups observed ops by pipeline rank, replica and step.
#pragma once

#include <cstddef>
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

/// The number of compute ops of a whole step: the most frequent one among steps that have every
/// stage, each with equally many forwards and backwards; if there are none, the largest number.
/// Steps with fewer were cut off.
std::size_t find_whole_count(const std::map<StepKey, StepOps>& steps);

/// Counts the steps that are whole, but have another number of micro-batches.
std::size_t count_other_microbatches(const std::map<StepKey, StepOps>& steps);

/// Renumbers the micro-batches of every step from 0, whatever the trace calls them; ops without a
/// number are numbered in order. Messages that brought the input of an op get its number.
StepOps number_microbatches(StepOps ops);

}  // namespace bubblescope::traces
