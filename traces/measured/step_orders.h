// Steps of recordings that begin or end within one.
//
//   0F2 0B2 0F3 0B3 | 0F0 0B0 0F1 0B1 0F2 0B2 0F3 0B3 | 0F0 0B0 ...    counted from the end
//
// Counted from the start, 0F2 would be of the step of the first 0F0, before which it ran. Such
// steps contradict the order of a pipeline: a rank does not go back to an earlier step, runs a
// forward before its backward, and all micro-batches pass the stages in one order, and back in the
// opposite one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Indices of the compute ops of one rank, by start.
using LaneOps = std::vector<std::size_t>;
using LaneSteps = std::vector<std::int64_t>;  ///< [op of the lane]

/// [lane]: the n-th time that a rank runs an op is step n.
std::vector<LaneSteps> count_from_start(const std::vector<ObservedOp>& ops,
                                        const std::vector<LaneOps>& lanes);

/// [lane]: the last time that a rank runs an op is the last step, and so on.
std::vector<LaneSteps> count_from_end(const std::vector<ObservedOp>& ops,
                                      const std::vector<LaneOps>& lanes);

/// [lane], of forwards alone, whose lanes are in the order of their stages: a rank begins a step
/// where the number of the micro-batch falls, and its first forward is of the step of the last one
/// of its micro-batch on the rank before it. Empty where these have none in common.
std::vector<LaneSteps> count_by_falls(const std::vector<ObservedOp>& ops,
                                      const std::vector<LaneOps>& lanes);

/// Whether the steps of one rank contradict its order.
bool contradict_order(const std::vector<ObservedOp>& ops, const LaneOps& lane,
                      const LaneSteps& steps);

/// Whether the steps of ranks that share a clock contradict the order of one of them or of all.
bool contradict_order(const std::vector<ObservedOp>& ops, const std::vector<LaneOps>& lanes,
                      const std::vector<LaneSteps>& steps);

/// Steps that end where the rank has no micro-batch in flight; nullopt unless these have all its
/// ops but for the first and the last one, which have some.
std::optional<LaneSteps> count_between_flights(const std::vector<ObservedOp>& ops,
                                               const LaneOps& lane);

}  // namespace bubblescope::traces
