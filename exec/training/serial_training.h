// What is trained, what training leaves behind, and the judge: the same steps without a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/optimizer.h"
#include "exec/training/transformer.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

struct TrainingOptions {
  TransformerShape model;
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;  ///< of weights and data
};

/// What some steps of training leave behind. The stages are those of the model: a replica of a
/// bidirectional schedule has its original's gradients and weights.
struct TrainingResult {
  std::vector<double> losses;                  ///< per step, the mean over its micro-batches
  std::vector<std::vector<Matrix>> gradients;  ///< [stage], of the last update
  std::vector<Stage> stages;                   ///< [stage], after the last step
  std::vector<Stage> initial = {};             ///< [stage], before the first; only the judge's
};

/// Data that can be learnt: each token follows from the one before it by a fixed rule.
Tokens make_tokens(const TrainingOptions& options, std::int32_t step, std::int32_t microbatch);

/// Those at some positions of every sequence.
Tokens take_tokens(const Tokens& whole, std::int32_t sequence, const Positions& positions);

/// The same steps on one rank, micro-batch after micro-batch, each on the versions of the weights
/// that the schedule prescribes: the judge.
TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps);

}  // namespace bubblescope
