// The end of a step, and what processes have to tell each other then.
#include <algorithm>
#include <utility>

#include "exec/training/matrix_blob.h"
#include "exec/training/training.h"

namespace bubblescope {

/// Everyone adds an original's gradients and its replicas' in the same order.
void Training::sum_replicas() {
  const auto originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  if (originals == stages_.size()) return;
  BlobWriter writer;
  for (const StageState& state : stages_) write_matrices(writer, state.gradients);
  std::vector<std::vector<Matrix>> gradients(stages_.size());
  for (const Blob& blob : processes_.share(writer.take())) {
    BlobReader reader(blob);
    for (std::vector<Matrix>& known : gradients) {
      std::vector<Matrix> told = read_matrices(reader);
      if (!told.empty()) known = std::move(told);
    }
  }
  for (std::size_t stage = originals; stage < stages_.size(); ++stage)
    for (std::size_t at = 0; at < gradients[stage].size(); ++at)
      add(gradients[stage % originals][at], gradients[stage][at]);
  for (std::size_t stage = 0; stage < stages_.size(); ++stage)
    if (!stages_[stage].gradients.empty()) stages_[stage].gradients = gradients[stage % originals];
}

void Training::finish_step() {
  sum_replicas();
  double loss = 0;
  for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
    for (StageState& state : stages_)
      if (!state.microbatches.empty())
        loss += std::exchange(state.microbatches[static_cast<std::size_t>(microbatch)].loss, 0);
  losses_.push_back(loss / schedule_.shape.microbatches);
  const bool asynchronous = !schedule_.weights.empty();
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (stages_[stage].microbatches.empty()) continue;
    if (!schedule_.forward_only && !asynchronous && !updates_inside_) update(stage);
    stages_[stage].weights.begin_step();
  }
}

TrainingResult Training::result() const {
  BlobWriter writer;
  writer.write_all(losses_);
  for (const StageState& state : stages_) {
    const bool here = !state.microbatches.empty();
    write_matrices(writer, here ? state.weights.newest().weights : std::vector<Matrix>());
    write_matrices(writer, state.last_gradients);
  }
  const std::int32_t originals = schedule_.stages_per_pipeline();
  TrainingResult result;
  result.losses.resize(losses_.size(), 0);
  for (std::int32_t stage = 0; stage < originals; ++stage)
    result.stages.push_back(make_stage({options_.model, stage, originals, options_.seed}));
  result.gradients.resize(result.stages.size());
  for (const Blob& blob : processes_.share(writer.take())) {
    BlobReader reader(blob);
    const std::vector<double> losses = reader.read_all<double>();
    for (std::size_t step = 0; step < losses.size(); ++step) result.losses[step] += losses[step];
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      std::vector<Matrix> weights = read_matrices(reader);
      std::vector<Matrix> gradients = read_matrices(reader);
      if (weights.empty() || stage >= result.stages.size()) continue;
      result.stages[stage].weights = std::move(weights);
      result.gradients[stage] = std::move(gradients);
    }
  }
  return result;
}

std::vector<Bytes> Training::peak_bytes() const {
  BlobWriter writer;
  for (const RankMemory& memory : memory_) writer.write(memory.peak);
  std::vector<Bytes> peaks(memory_.size(), 0);
  for (const Blob& blob : processes_.share(writer.take())) {
    BlobReader reader(blob);
    for (Bytes& peak : peaks) peak = std::max(peak, reader.read<Bytes>());
  }
  return peaks;
}

}  // namespace bubblescope
