// The end of a step, and the results that processes exchange then.
#include <algorithm>
#include <utility>

#include "exec/training/matrix_blob.h"
#include "exec/training/trained_stages.h"

namespace bubblescope::exec {

/// All ranks that hold the same weights add the gradients in the same order.
void TrainedStages::sum_replicas() {
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

void TrainedStages::finish_step() {
  const bool asynchronous = !schedule_.weights.empty();
  if (!has_program_updates_ && !asynchronous) sum_replicas();
  double loss = 0;
  const std::size_t forwards = static_cast<std::size_t>(schedule_.shape.microbatches) *
                               static_cast<std::size_t>(schedule_.shape.slices);
  for (std::size_t at = 0; at < forwards; ++at) {
    double of_all_heads = 0;
    for (StageState& state : stages_)
      if (state.is_here()) of_all_heads += std::exchange(state.microbatches[at].loss, 0);
    loss += of_all_heads;
  }
  losses_.push_back(loss / schedule_.shape.microbatches);
  for (StageReplica replica = 0; replica < stages_.size(); ++replica) {
    if (!stages_[replica].is_here()) continue;
    if (!schedule_.forward_only && !asynchronous && !has_program_updates_) update(replica);
    stages_[replica].weights.begin_step();
  }
}

namespace {

/// The head and its gradient, from its shards.
class ShardedHead {
 public:
  explicit ShardedHead(std::int32_t shards)
      : weights_(static_cast<std::size_t>(shards)), gradients_(weights_.size()) {}

  /// A process without the shard has no matrices.
  void add(std::size_t shard, std::vector<Matrix> weights, std::vector<Matrix> gradients) {
    if (weights.empty()) return;
    weights_[shard] = std::move(weights.front());
    gradients_[shard] = std::move(gradients.front());
  }

  void append_to(TrainingResult& result) const {
    const std::size_t last = result.stages.size() - 1;
    result.stages[last].weights.push_back(join_columns(weights_));
    result.gradients[last].push_back(join_columns(gradients_));
  }

 private:
  static Matrix join_columns(const std::vector<Matrix>& parts) {
    std::int32_t columns = 0;
    for (const Matrix& part : parts) columns += part.columns;
    Matrix whole(parts.front().rows, columns);
    std::int32_t begin = 0;
    for (const Matrix& part : parts) {
      for (std::int32_t row = 0; row < part.rows; ++row)
        std::copy_n(part.row(row), part.columns, whole.row(row) + begin);
      begin += part.columns;
    }
    return whole;
  }

  std::vector<Matrix> weights_;
  std::vector<Matrix> gradients_;
};

}  // namespace

TrainingResult TrainedStages::result() const {
  BlobWriter writer;
  writer.write_all(losses_);
  for (const StageState& state : stages_) {
    write_matrices(writer,
                   state.is_here() ? state.weights.newest().weights : std::vector<Matrix>());
    write_matrices(writer, state.last_gradients);
  }
  const std::int32_t originals = model_stages(schedule_);
  TrainingResult result;
  result.losses.resize(losses_.size(), 0);
  for (std::int32_t stage = 0; stage < originals; ++stage)
    result.stages.push_back(make_stage(plan_whole(schedule_, options_, stage)));
  result.gradients.resize(result.stages.size());
  ShardedHead head(schedule_.side_stages);
  for (const Blob& blob : processes_.gather(writer.take())) {
    BlobReader reader(blob);
    const std::vector<double> losses = reader.read_all<double>();
    for (std::size_t step = 0; step < losses.size(); ++step) result.losses[step] += losses[step];
    for (StageReplica replica = 0; replica < stages_.size(); ++replica) {
      std::vector<Matrix> weights = read_matrices(reader);
      std::vector<Matrix> gradients = read_matrices(reader);
      const std::size_t stage = stage_of(replica);
      if (schedule_.is_side_stage(static_cast<std::int32_t>(stage))) {
        head.add(stage - result.stages.size(), std::move(weights), std::move(gradients));
        continue;
      }
      if (weights.empty() || stage >= result.stages.size() ||
          replica != replicas_.sharing()[stage][0])
        continue;
      result.stages[stage].weights = std::move(weights);
      result.gradients[stage] = std::move(gradients);
    }
  }
  if (schedule_.side_stages > 0) head.append_to(result);
  return result;
}

std::vector<Bytes> TrainedStages::peak_bytes() const {
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
