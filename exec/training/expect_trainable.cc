// Checks whether a schedule can be trained.
#include <algorithm>
#include <string>

#include "exec/training/training.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Every slice needs at least one position.
void expect_sliceable(const Schedule& schedule, const TransformerShape& model) {
  const std::int32_t slices = schedule.shape.slices;
  if (slices > model.sequence)
    throw Error("sequences of " + std::to_string(model.sequence) + " tokens cannot be split into " +
                std::to_string(slices) + " slices; take `seq_length` " + std::to_string(slices) +
                " or more");
  if (slices > 1 && !schedule.weights.empty())
    throw Error(
        schedule.name +
        " slices sequences and updates without flushes, which cannot be trained; omit `slices`, "
        "or use `work` sleep");
}

/// The transformer that is trained has its whole output layer on the last stage.
void expect_chain(const Schedule& schedule) {
  if (schedule.side_stages > 0)
    throw Error(schedule.name + " has " + std::to_string(schedule.side_stages) +
                " stages beside the chain, which the trained transformer has not; use "
                "`work` sleep");
}

/// Without this, the last update of a step without flushes would lack some replicas.
void expect_full_rounds(const Schedule& schedule) {
  if (schedule.weights.empty()) return;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    if (schedule.shape.microbatches % schedule.replicas(stage) != 0)
      throw Error(std::to_string(schedule.shape.microbatches) + " micro-batches do not fill the " +
                  std::to_string(schedule.replicas(stage)) + " replicas of stage " +
                  std::to_string(stage) + "; take a multiple of it as `microbatches` to train");
}

}  // namespace

void expect_trainable(const Schedule& schedule, const TrainingOptions& options) {
  expect_chain(schedule);
  expect_sliceable(schedule, options.model);
  expect_full_rounds(schedule);
  if (options.model.width % options.model.heads != 0)
    throw Error(std::to_string(options.model.heads) + " heads do not divide a width of " +
                std::to_string(options.model.width) + "; choose a multiple as the width");
}

}  // namespace bubblescope::exec
