// Checks whether a schedule can be trained.
#include "exec/training/expect_trainable.h"

#include <algorithm>
#include <span>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Every slice needs at least one position.
void expect_sliceable(const Schedule& schedule, const TransformerShape& model) {
  const std::int32_t slices = schedule.shape.slices;
  if (slices > model.sequence)
    throw Error("sequences of " + counted(model.sequence, "token") + " cannot be split into " +
                counted(slices, "slice") + "; take `seq_length` " + std::to_string(slices) +
                " or more");
  if (slices > 1 && !schedule.weights.empty())
    throw Error(
        schedule.name +
        " slices sequences and updates without flushes, which cannot be trained; omit `slices`, "
        "or use `work` sleep");
}

/// Side stages are shards of the output layer: they read the last stage of the chain.
void expect_shards(const Schedule& schedule, const TransformerShape& model) {
  if (schedule.side_stages == 0) return;
  const std::int32_t chain = model_stages(schedule);
  bool reads_the_one_before = !schedule.graph.is_chain();
  for (std::int32_t stage = 1; reads_the_one_before && stage < schedule.stages(); ++stage) {
    const std::span<const std::int32_t> inputs = schedule.graph.inputs(stage);
    reads_the_one_before = inputs.size() == 1 && inputs[0] == std::min(stage, chain) - 1;
  }
  if (!reads_the_one_before)
    throw Error(schedule.name + " has " + counted(schedule.side_stages, "stage") +
                " beside the chain, which are trained only as shards of the output layer: "
                "they read the last stage of a chain; correct its inputs, or use `work` sleep");
  if (schedule.side_stages > model.vocabulary)
    throw Error("a vocabulary of " + counted(model.vocabulary, "word") + " cannot be split into " +
                counted(schedule.side_stages, "shard") + "; take `vocab_size` " +
                std::to_string(schedule.side_stages) + " or more");
  if (schedule.forward_only || !schedule.weights.empty())
    throw Error(schedule.name +
                " has shards of the output layer, which are trained with backwards and a flush; "
                "use `work` sleep");
}

/// Without this, the last update of a step without flushes would lack some replicas.
void expect_full_rounds(const Schedule& schedule) {
  if (schedule.weights.empty()) return;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    if (schedule.shape.microbatches % schedule.replicas(stage) != 0)
      throw Error(counted(schedule.shape.microbatches, "micro-batch") + " cannot fill the " +
                  counted(schedule.replicas(stage), "replica") + " of stage " +
                  std::to_string(stage) + "; take a multiple of it as `microbatches` to train");
}

}  // namespace

void expect_trainable(const Schedule& schedule, const TrainingOptions& options) {
  expect_shards(schedule, options.model);
  expect_sliceable(schedule, options.model);
  expect_full_rounds(schedule);
  if (options.model.width % options.model.heads != 0)
    throw Error(counted(options.model.heads, "head") + " cannot divide a width of " +
                std::to_string(options.model.width) + "; choose a multiple as the width");
}

}  // namespace bubblescope::exec
