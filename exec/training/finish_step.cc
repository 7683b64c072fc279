// The end of a step, and the results that processes exchange then.
#include <algorithm>
#include <utility>

#include "exec/training/matrix_blob.h"
#include "exec/training/training.h"

namespace bubblescope::exec {

/// All ranks that hold the same weights add the gradients in the same order.
void Training::sum_replicas() {
  const auto originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  if (originals == stages_.size()) return;
  BlobWriter writer;
  for (const StageState& state : stages_) write_matrices(writer, state.gradients);
  std::vector<std::vector<Matrix>> gradients(stages_.size());
  for (const Blob& blob : processes_.gather(writer.take())) {
    BlobReader reader(blob);
    for (std::vector<Matrix>& known : gradients) {
      std::vector<Matrix> received = read_matrices(reader);
      if (!received.empty()) known = std::move(received);
    }
  }
  std::vector<std::vector<Matrix>> sums(originals);
  for (StageReplica replica = 0; replica < stages_.size(); ++replica) {
    std::vector<Matrix>& sum = sums[stage_of(replica) % originals];
    if (sum.empty())
      sum = std::move(gradients[replica]);
    else
      for (std::size_t at = 0; at < sum.size(); ++at) add(sum[at], gradients[replica][at]);
  }
  for (StageReplica replica = 0; replica < stages_.size(); ++replica)
    if (stages_[replica].is_here())
      stages_[replica].gradients = sums[stage_of(replica) % originals];
}

void Training::finish_step() {
  const bool asynchronous = !schedule_.weights.empty();
  if (!program_updates_ && !asynchronous) sum_replicas();
  double loss = 0;
  const std::size_t forwards = static_cast<std::size_t>(schedule_.shape.microbatches) *
                               static_cast<std::size_t>(schedule_.shape.slices);
  for (std::size_t at = 0; at < forwards; ++at)
    for (StageState& state : stages_)
      if (state.is_here()) loss += std::exchange(state.microbatches[at].loss, 0);
  losses_.push_back(loss / schedule_.shape.microbatches);
  for (StageReplica replica = 0; replica < stages_.size(); ++replica) {
    if (!stages_[replica].is_here()) continue;
    if (!schedule_.forward_only && !asynchronous && !program_updates_) update(replica);
    stages_[replica].weights.begin_step();
  }
}

TrainingResult Training::result() const {
  BlobWriter writer;
  writer.write_all(losses_);
  for (const StageState& state : stages_) {
    write_matrices(writer,
                   state.is_here() ? state.weights.newest().weights : std::vector<Matrix>());
    write_matrices(writer, state.last_gradients);
  }
  const std::int32_t originals = schedule_.stages_per_pipeline();
  TrainingResult result;
  result.losses.resize(losses_.size(), 0);
  for (std::int32_t stage = 0; stage < originals; ++stage)
    result.stages.push_back(make_stage({options_.model, stage, originals, options_.seed}));
  result.gradients.resize(result.stages.size());
  for (const Blob& blob : processes_.gather(writer.take())) {
    BlobReader reader(blob);
    const std::vector<double> losses = reader.read_all<double>();
    for (std::size_t step = 0; step < losses.size(); ++step) result.losses[step] += losses[step];
    for (StageReplica replica = 0; replica < stages_.size(); ++replica) {
      std::vector<Matrix> weights = read_matrices(reader);
      std::vector<Matrix> gradients = read_matrices(reader);
      const std::size_t stage = stage_of(replica);
      if (weights.empty() || stage >= result.stages.size() ||
          replica != stage_replicas_.sharing()[stage][0])
        continue;
      result.stages[stage].weights = std::move(weights);
      result.gradients[stage] = std::move(gradients);
    }
  }
  return result;
}

std::vector<Bytes> Training::peak_bytes() const {
  BlobWriter writer;
  for (const RankMemory& memory : memory_) writer.write(memory.peak());
  std::vector<Bytes> peaks(memory_.size(), 0);
  for (const Blob& blob : processes_.gather(writer.take())) {
    BlobReader reader(blob);
    for (Bytes& peak : peaks) peak = std::max(peak, reader.read<Bytes>());
  }
  return peaks;
}

}  // namespace bubblescope::exec
