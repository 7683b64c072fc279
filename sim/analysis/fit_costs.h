// From measured steps to costs: what `simulate` needs to predict other steps of the same job.
//
//   stages     the mean time per stage and kind over all replicas, without stragglers
//   replicas   the same for each data-parallel replica, where there are several
//              and what stages do once per update: gather, reduce, update
//   message    the median time of the messages that did not wait for their receiver
//   op gap     how late ops are launched in the mean: after the op before them on their rank, and,
//              as a part of the message, after what they received
//   noise      how steps differ: fit_noise.h
// Shards of the output layer are entries after those of the stages.
// If the speed of the steps has changed for good, only the steps after the last change count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/fit_noise.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

struct FitOptions {
  std::int32_t stages = 0;  ///< of one pipeline
  /// The input gradient's fraction of a full backward, for stages that never split it; empty: such
  /// stages get no input_grad and weight_grad.
  std::optional<double> split_backward;
  bool per_microbatch = false;  ///< fit lists, too, for steps with the same micro-batches
};

struct FittedCosts {
  CostTable table;             ///< divisible, or with lists; without the time outside the pipeline
  std::size_t first_step = 0;  ///< the steps before it are left out
  std::optional<Drift> drift;  ///< why they are left out
  std::vector<std::string> notes;  ///< whole sentences on what was assumed
};

/// Requires at least one step; all have the same replicas and stages. Throws Error for stages that
/// lack a forward, and for times per micro-batch that do not exist (fit_microbatches.h).
FittedCosts fit_costs(std::span<const ReplicatedStep> steps, const FitOptions& options);

}  // namespace bubblescope::inline sim
