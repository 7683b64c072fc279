// Sums gradients, and gathers the results of all processes.
#include "exec/nccl/nccl_training.h"

#include <algorithm>
#include <utility>

#include "exec/training/matrix_blob.h"

namespace bubblescope::exec {

namespace {

/// [stage]: whether the Program has a REDUCE_GRAD of it.
std::vector<bool> find_reduced(const Schedule& schedule, const Program& program) {
  std::vector<bool> reduced(static_cast<std::size_t>(schedule.stages()), false);
  for (const Instruction& instruction : program.instructions)
    if (instruction.op.kind == OpKind::kReduceGrad && instruction.role == Role::kWork)
      reduced[static_cast<std::size_t>(instruction.op.stage)] = true;
  return reduced;
}

}  // namespace

NcclTraining::NcclTraining(const GpuMachine& machine, const JobRequest& job, const JobPart& part,
                           StepProtocol& protocol)
    : machine_(machine),
      schedule_(job.schedule),
      program_(job.program),
      protocol_(protocol),
      part_(part),
      reduced_inside_(find_reduced(job.schedule, job.program)),
      training_(machine, job, make_exchange(part)) {}

GpuExchange NcclTraining::make_exchange(const JobPart& part) {
  return {[this](double loss) { return sum_losses(loss); }, [this] { sum_replicas(); },
          part.replica, part.replicas};
}

/// The weights of a stage; none if this process does not hold it.
const std::vector<GpuWeight>& NcclTraining::weights_of(std::int32_t stage) const {
  const std::int32_t replica =
      part_.rank - schedule_.rank_of_stage[static_cast<std::size_t>(stage)];
  const bool is_here = replica >= 0 && replica < schedule_.replicas(stage);
  const StageReplica first = training_.weights().stage_replicas().first(stage);
  return training_.weights()
      .stage(first + static_cast<StageReplica>(is_here ? replica : 0))
      .weights;
}

void NcclTraining::enqueue(InstructionId id, void* stream) {
  const auto& [op, lane, rank, peer, role] = program_.instructions[id];
  if (role != Role::kWork || !is_collective(op.kind)) return training_.enqueue(id, stream);
  if (weights_of(op.stage).empty() || !nccl_links_->is_shared(op.stage)) return;
  if (op.kind == OpKind::kReduceGrad) return sum(op.stage, stream);
  if (!nccl_links_->gathers(op.stage)) return;
  if (op.kind == OpKind::kUnshard) gather(op.stage, stream);
  if (op.kind == OpKind::kReshard) drop(op.stage, stream);
}

std::vector<NcclRanks::Buffer> NcclTraining::find(const PlannedTransfer& transfer) {
  if (transfer.link_kind != LinkKind::kMessages) return training_.find_copy_buffers(transfer.id);
  const Instruction& instruction = program_.instructions[transfer.id];
  if (!is_message(instruction)) return {};
  const GpuMessage message = training_.find_message(instruction.op);
  return {buffer_of(transfer.sends ? message.from : message.to)};
}

/// Sums the gradients of a stage. If the Program reduces a sharded stage within the step, each
/// owner gets only the sum of its shard.
void NcclTraining::sum(std::int32_t stage, void* stream) const {
  std::vector<GpuMatrix> gradients;
  for (const GpuWeight& weight : weights_of(stage)) gradients.push_back(weight.grad);
  if (nccl_links_->gathers(stage) && reduced_inside_[static_cast<std::size_t>(stage)])
    return nccl_links_->sum_shards(stage, gradients, stream);
  std::vector<NcclRanks::Buffer> buffers;
  for (const GpuMatrix& gradient : gradients) buffers.push_back(buffer_of(gradient));
  nccl_links_->sum(stage, buffers, stream);
}

void NcclTraining::gather(std::int32_t stage, void* stream) const {
  std::vector<GpuMatrix> values;
  for (const GpuWeight& weight : weights_of(stage)) values.push_back(weight.value);
  nccl_links_->gather_shards(stage, values, stream);
}

/// Overwrites the shards of other replicas with zeros. An op that runs before the next gather then
/// reads zeros, which shows in the gradients.
void NcclTraining::drop(std::int32_t stage, void* stream) const {
  for (const GpuWeight& weight : weights_of(stage)) {
    const std::size_t entries = weight.value.entries();
    const Shard own = shard_of(entries, part_.replica, part_.replicas);
    for (const Shard& other : {Shard{0, own.begin}, Shard{own.end(), entries - own.end()}}) {
      const GpuBuffer piece = buffer_of(weight.value, other.begin, other.count);
      if (piece.bytes > 0) machine_.gpu().clear(piece.data, piece.bytes, stream);
    }
  }
}

/// Sums in the order of the model's stages, which is the same in all processes.
void NcclTraining::sum_replicas() const {
  const GpuHandle stream = machine_.gpu().create_stream(0, nullptr);
  const std::int32_t originals = schedule_.stages_per_pipeline();
  for (std::int32_t original = 0; original < originals; ++original)
    for (std::int32_t stage = original; stage < schedule_.stages(); stage += originals)
      if (!weights_of(stage).empty() && nccl_links_->is_shared(stage) &&
          !reduced_inside_[static_cast<std::size_t>(stage)])
        sum(stage, stream.get());
  nccl_links_->await(stream);
}

double NcclTraining::sum_losses(double part) const {
  double sum = 0;
  for (const Blob& blob : protocol_.gather(blob_of(part))) sum += BlobReader(blob).read<double>();
  return sum;
}

TrainingResult NcclTraining::result() const {
  TrainingResult result = training_.result();
  BlobWriter writer;
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    write_matrices(writer, result.stages[stage].weights);
    write_matrices(writer,
                   result.gradients.empty() ? std::vector<Matrix>() : result.gradients[stage]);
  }
  result.gradients.resize(result.stages.size());
  std::int32_t process = 0;
  for (const Blob& blob : protocol_.gather(writer.take())) {
    const std::int32_t replica = process++ / part_.ranks;
    BlobReader reader(blob);
    for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
      const bool gathers = nccl_links_->gathers(static_cast<std::int32_t>(stage));
      const auto owner = gathers ? std::optional(replica) : std::nullopt;
      merge(result.stages[stage].weights, read_matrices(reader), owner);
      merge(result.gradients[stage], read_matrices(reader),
            reduced_inside_[stage] ? owner : std::nullopt);
    }
  }
  return result;
}

/// Merges the matrices of one process into `known`: all entries, or only the shard of its replica.
void NcclTraining::merge(std::vector<Matrix>& known, std::vector<Matrix> received,
                         std::optional<std::int32_t> replica) const {
  if (received.empty()) return;
  if (known.empty() || !replica) {
    known = std::move(received);
    return;
  }
  for (std::size_t at = 0; at < received.size(); ++at) {
    const Shard own = shard_of(received[at].values.size(), *replica, part_.replicas);
    const auto begin = received[at].values.begin() + static_cast<std::ptrdiff_t>(own.begin);
    std::copy_n(begin, own.count,
                known[at].values.begin() + static_cast<std::ptrdiff_t>(own.begin));
  }
}

std::vector<Bytes> NcclTraining::peak_bytes() const {
  std::vector<Bytes> peaks = training_.peak_bytes();
  BlobWriter writer;
  writer.write_all(peaks);
  for (const Blob& blob : protocol_.gather(writer.take())) {
    const std::vector<Bytes> received = BlobReader(blob).read_all<Bytes>();
    for (std::size_t rank = 0; rank < peaks.size(); ++rank)
      peaks[rank] = std::max(peaks[rank], received.at(rank));
  }
  return peaks;
}

std::vector<EpilogueUse> NcclTraining::epilogues() const {
  BlobWriter writer;
  writer.write_all(training_.epilogues());
  std::vector<EpilogueUse> uses;
  for (const Blob& blob : protocol_.gather(writer.take()))
    for (const EpilogueUse& use : BlobReader(blob).read_all<EpilogueUse>())
      if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
  return uses;
}

}  // namespace bubblescope::exec
