// Training options and results, and the serial reference: the same steps without a pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/optimizer.h"
#include "exec/training/transformer.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

struct TrainingOptions {
  TransformerShape model;
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;  ///< of weights and training data
};

/// The result of training. Stages are those of the model: a replica of a bidirectional schedule has
/// its original's gradients and weights.
struct TrainingResult {
  std::vector<double> losses;                  ///< per step, the mean over its micro-batches
  std::vector<std::vector<Matrix>> gradients;  ///< [stage], of the last update
  std::vector<Stage> stages;                   ///< [stage], after the last step
  std::vector<Stage> initial = {};             ///< [stage]; only of the serial reference
};

/// The number of stages of the model: without those of other pipelines, and without shards.
std::int32_t model_stages(const Schedule& schedule);

/// Returns the plan that determines the initial weights of a stage; its replicas have the same.
StagePlan plan_of(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage);

/// The same for a stage of the model: the last one has the whole head, even if the schedule splits
/// it into shards.
StagePlan plan_whole(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage);

/// Data that can be learnt: each token follows from the previous one by a fixed rule.
Tokens make_tokens(const TrainingOptions& options, std::int32_t step, std::int32_t microbatch);

/// Returns the same inputs, with targets that are so many tokens ahead of them.
Tokens look_ahead(Tokens tokens, const TrainingOptions& options, std::int32_t ahead);

/// Returns the tokens at some positions of every sequence.
Tokens take_tokens(const Tokens& whole, std::int32_t sequence, const Positions& positions);

/// The serial reference: trains the same steps on one rank, each micro-batch with the weight
/// versions that the schedule prescribes.
TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps);

/// The same from first weights that are one rounding of float32 off. Shows how far training itself
/// carries the differences of roundings.
TrainingResult train_disturbed(const Schedule& schedule, const TrainingOptions& options,
                               std::int32_t steps);

}  // namespace bubblescope::exec
