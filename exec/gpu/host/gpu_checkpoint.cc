// The state of a training on devices between two steps, in the format of exec/training: weights are
// the float32 masters, of which GEMMs read copies.
#include <bit>
#include <cstdint>
#include <iterator>

#include "exec/gpu/host/gpu_training.h"
#include "exec/training/precision.h"
#include "exec/training/stage_checkpoint.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// A matrix as the device stores it in bfloat16.
std::vector<std::uint16_t> to_halves(const Matrix& matrix) {
  std::vector<std::uint16_t> halves;
  halves.reserve(matrix.values.size());
  for (const float value : matrix.values) {
    const float rounded = stored(value, Precision::kBfloat16);
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16));
  }
  return halves;
}

}  // namespace

std::vector<Matrix> GpuWeights::download_all(const std::vector<GpuMatrix>& matrices) const {
  std::vector<Matrix> downloaded;
  for (const GpuMatrix& matrix : matrices) downloaded.push_back(download(matrix));
  return downloaded;
}

std::vector<Matrix> GpuWeights::download_gradients(const ReplicaWeights& held) const {
  std::vector<Matrix> gradients;
  for (const GpuWeight& weight : held.versions[0].weights)
    gradients.push_back(download(weight.grad));
  return gradients;
}

/// The next step clears gradients that no update of it uses, so only a checkpoint that keeps the
/// last gradients needs them.
StageCheckpoint GpuWeights::save(StageReplica replica, bool keeps_last_gradients) const {
  const ReplicaWeights& held = replica_weights_[replica];
  StageCheckpoint stage;
  for (const GpuWeight& weight : held.versions[0].weights)
    stage.weights.push_back(download(weight.master));
  if (held.steps.data != nullptr)
    stage.optimizer.steps = static_cast<std::int32_t>(download(held.steps).values[0]);
  if (stage.optimizer.steps > 0) {
    stage.optimizer.mean = download_all(held.mean);
    stage.optimizer.square = download_all(held.square);
  }
  if (held.plan.leaves_gradients) {
    stage.gradients = download_gradients(held);
    if (keeps_last_gradients) stage.last_gradients = download_all(held.last_grads);
  } else if (keeps_last_gradients) {
    stage.last_gradients = download_gradients(held);
  }
  return stage;
}

StageCheckpointShape GpuWeights::checkpoint_shape(StageReplica replica) const {
  StageCheckpointShape shape;
  for (const GpuWeight& weight : replica_weights_[replica].versions[0].weights)
    shape.weights.push_back({weight.master.rows, weight.master.columns});
  return shape;
}

void GpuWeights::upload(const GpuMatrix& to, const Matrix& from) const {
  if (to.dtype == kBubblescopeFloat32)
    return machine_.gpu().upload(to.data, from.values.data(),
                                 static_cast<std::size_t>(from.bytes()));
  const std::vector<std::uint16_t> halves = to_halves(from);
  machine_.gpu().upload(to.data, halves.data(), halves.size() * sizeof(std::uint16_t));
}

void GpuWeights::restore_optimizer(const ReplicaWeights& held, const OptimizerState& state) const {
  if (held.steps.data == nullptr) {
    if (!state.mean.empty()) throw Error("a checkpoint has Adam's moments without Adam");
    return;
  }
  Matrix steps(held.steps.rows, held.steps.columns);  // the next update computes the rest
  steps.values[0] = static_cast<float>(state.steps);
  upload(held.steps, steps);
  for (std::size_t at = 0; at < held.mean.size(); ++at) {
    const Matrix zeros(held.mean[at].rows, held.mean[at].columns);
    upload(held.mean[at], state.mean.empty() ? zeros : state.mean[at]);
    upload(held.square[at], state.square.empty() ? zeros : state.square[at]);
  }
}

/// All versions get the same weights, of which begin_step() takes one as the first.
void GpuWeights::restore(StageReplica replica, const StageCheckpoint& stage) {
  const ReplicaWeights& held = replica_weights_[replica];
  const bool leaves = held.plan.leaves_gradients;
  restore_optimizer(held, stage.optimizer);
  for (const GpuStage& version : held.versions)
    for (std::size_t at = 0; at < version.weights.size(); ++at)
      upload(version.weights[at].value, stage.weights[at]);
  const std::vector<GpuWeight>& weights = held.versions[0].weights;
  for (std::size_t at = 0; at < weights.size(); ++at) {
    upload(weights[at].master, stage.weights[at]);
    if (leaves || !stage.last_gradients.empty())
      upload(weights[at].grad, leaves ? stage.gradients[at] : stage.last_gradients[at]);
    if (leaves && !stage.last_gradients.empty())
      upload(held.last_grads[at], stage.last_gradients[at]);
  }
}

Blob GpuTraining::save() const {
  const bool keeps_last = keeps_last_gradients(schedule_);
  BlobWriter writer;
  writer.write_all(step_losses_);
  for (StageReplica replica = 0; replica < weights_.stage_replicas().size(); ++replica) {
    const bool is_here = machine_.runs(weights_.stage_replicas().rank(replica));
    writer.write(static_cast<std::uint8_t>(is_here));
    if (!is_here) continue;
    const StageCheckpoint stage = weights_.save(replica, keeps_last);
    write_stage(writer, {stage.weights, stage.optimizer, stage.gradients, stage.last_gradients},
                keeps_last);
  }
  return writer.take();
}

void GpuTraining::restore(std::span<const std::byte> bytes) {
  BlobReader reader(bytes);
  step_losses_ = reader.read_all<double>();
  for (StageReplica replica = 0; replica < weights_.stage_replicas().size(); ++replica) {
    const bool is_here = machine_.runs(weights_.stage_replicas().rank(replica));
    if ((reader.read<std::uint8_t>() != 0) != is_here)
      throw Error("a checkpoint has stages of another process");
    if (!is_here) continue;
    StageCheckpointShape shape = weights_.checkpoint_shape(replica);
    shape.keeps_last_gradients = keeps_last_gradients(schedule_);
    // Every micro-batch updates the weights at most once.
    shape.max_updates = std::int64_t{schedule_.shape.microbatches} * std::ssize(step_losses_);
    weights_.restore(replica, read_stage(reader, shape));
  }
  if (!reader.rest().empty()) throw Error("a checkpoint has more bytes than its training needs");
}

ResumableTraining GpuTraining::resumable() {
  return {[this] { return static_cast<std::int32_t>(step_losses_.size()); },
          [this] { return save(); }, [this](std::span<const std::byte> state) { restore(state); },
          computed_by_};
}

}  // namespace bubblescope::exec
