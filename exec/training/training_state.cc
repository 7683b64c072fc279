// The state of a training between two steps. Data needs none, because the data of a step depends on
// the seed and the step alone. Neither do weight versions: a step ends with the newest one only.
#include <cstdint>
#include <iterator>
#include <utility>

#include "exec/training/stage_checkpoint.h"
#include "exec/training/trained_stages.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

Blob TrainedStages::save() const {
  BlobWriter writer;
  writer.write_all(losses_);
  for (const StageState& state : stages_) {
    writer.write(static_cast<std::uint8_t>(state.is_here()));
    if (!state.is_here()) continue;
    write_stage(writer,
                {state.weights.newest().weights, state.weights.optimizer(), state.gradients,
                 state.last_gradients},
                keeps_last_gradients(schedule_));
  }
  return writer.take();
}

void TrainedStages::restore(std::span<const std::byte> bytes) {
  BlobReader reader(bytes);
  losses_ = reader.read_all<double>();
  // Every micro-batch updates the weights at most once.
  const std::int64_t max_updates = std::int64_t{schedule_.shape.microbatches} * std::ssize(losses_);
  for (StageState& state : stages_) {
    if ((reader.read<std::uint8_t>() != 0) != state.is_here())
      throw Error("a checkpoint has stages of another process");
    if (!state.is_here()) continue;
    StageCheckpointShape shape{{}, keeps_last_gradients(schedule_), max_updates};
    for (const Matrix& gradient : state.gradients)
      shape.weights.push_back({gradient.rows, gradient.columns});
    StageCheckpoint stage = read_stage(reader, shape);
    state.weights.restore(std::move(stage.weights), std::move(stage.optimizer));
    state.gradients = std::move(stage.gradients);
    if (shape.keeps_last_gradients) state.last_gradients = std::move(stage.last_gradients);
  }
  if (!reader.rest().empty()) throw Error("a checkpoint has more bytes than its training needs");
}

ResumableTraining TrainedStages::resumable() {
  return {[this] { return steps(); },
          [this] { return save(); },
          [this](std::span<const std::byte> state) { restore(state); },
          {{"products by", gemm_library()}}};
}

}  // namespace bubblescope::exec
