// Adds the ops that shard and gather a rank's parameters, as PyTorch's lowering posts them for
// FSDP.
//
//   0UNSHARD 2UNSHARD 0F0 0F1 2F0 2F1 2B0 2B1 2REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD 0RESHARD 2RESHARD
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/pytorch_release.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// The maximum number of stages of a rank that are gathered at once (PyTorch's max_active_stages).
inline constexpr std::size_t kMaxGatheredStages = 3;

/// How many of its next different stages a rank gathers, from the one that computes on (PyTorch's
/// unshard_lookahead).
struct UnshardLookahead {
  /// One for all ranks, or one per rank; empty: PyTorch's "auto", two on rank 0, and one more on
  /// each later rank up to kMaxGatheredStages.
  std::vector<std::int32_t> stages = {};

  bool operator==(const UnshardLookahead&) const = default;
};

/// Returns "auto", "full", or a number such as "2", or one number per rank such as "1,2,2".
std::string to_string(const UnshardLookahead& lookahead);

/// The lookahead of each rank. Throws Error for another number of ranks, and for numbers that are
/// not 1..kMaxGatheredStages.
std::vector<std::int32_t> spread_lookahead(const UnshardLookahead& lookahead, std::int32_t ranks);

/// PyTorch's _add_unshard_reshard: before each op, drops the stages that are not among the next
/// kMaxGatheredStages different stages, and gathers those that are among the next `lookahead`, in
/// their order. Drops everything at the end. Releases before 2.15 drop in the order of a Python
/// set, later ones oldest first.
RankOrder add_unshards(const RankOrder& order, PytorchRelease release,
                       std::size_t lookahead = kMaxGatheredStages);

/// PyTorch's _add_reduce_grad: after the last weight gradient of each stage, and after the sends
/// that directly follow it, where they are posted already.
RankOrder add_reductions(const RankOrder& order);

/// Whether each rank reduces its gradients by itself. False if the replicas of two pipelines reduce
/// together, or if every update reduces: then the GradReduction decides.
bool reduces_by_rank(const Schedule& schedule);

/// Adds both to the schedule as its `posted` cells, without idle cells; reductions only if
/// reduces_by_rank(). Without `lookahead`, stages are gathered as far ahead as may be. Does not add
/// the waits that 2.15 needs (add_reduction_waits). The result is validated again.
ValidSchedule shard_stages(ValidSchedule schedule,
                           PytorchRelease release = PytorchRelease::kFrom215,
                           const std::optional<UnshardLookahead>& lookahead = {});

}  // namespace bubblescope::inline sim
