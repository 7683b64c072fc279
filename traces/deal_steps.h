// Dealing observed ops to the ranks of a pipeline, its replicas and its steps.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/trace_format.h"

namespace bubblescope {

using StepKey = std::pair<std::int32_t, std::int64_t>;  ///< replica, step

/// All ops of one step; their `recorder` is their rank.
struct StepOps {
  std::vector<ObservedOp> computes;
  std::vector<ObservedOp> messages;
};

/// The pipeline rank of every recorder: by the ranks that they say, else by the first stage that
/// they run, else in the order of the files.
std::vector<std::int32_t> rank_recorders(const ObservedTrace& trace);

/// The steps that have compute ops.
std::map<StepKey, StepOps> deal_to_steps(std::vector<ObservedOp> ops,
                                         const std::vector<std::int32_t>& rank_of_recorder);

/// Micro-batches count from 0 in every step, whatever the trace calls them; ops without a number
/// get theirs by order.
void number_microbatches(std::vector<ObservedOp>& computes);

}  // namespace bubblescope
