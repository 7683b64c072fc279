// Sums of gradients, and results from everywhere.
#include "exec/nccl/nccl_training.h"

#include <algorithm>
#include <utility>

#include "exec/training/matrix_blob.h"

namespace bubblescope {

namespace {

/// Stages whose gradients the Program reduces by itself.
std::vector<bool> find_reduced(const Schedule& schedule, const Program& program) {
  std::vector<bool> reduced(static_cast<std::size_t>(schedule.stages()), false);
  for (const Instruction& instruction : program.instructions)
    if (instruction.op.kind == OpKind::kReduceGrad && instruction.role == Role::kWork)
      reduced[static_cast<std::size_t>(instruction.op.stage)] = true;
  return reduced;
}

NcclRanks::Buffer buffer_of(const GpuMatrix& matrix) {
  return {matrix.data, static_cast<std::size_t>(matrix.bytes())};
}

}  // namespace

NcclTraining::NcclTraining(const GpuMachine& machine, const JobRequest& job, const JobPart& part,
                           StepLink& outside)
    : machine_(machine),
      schedule_(job.schedule),
      program_(job.program),
      outside_(outside),
      reduced_inside_(find_reduced(job.schedule, job.program)),
      training_(machine, job, make_exchange(part)) {}

GpuExchange NcclTraining::make_exchange(const JobPart& part) {
  return {[this](double loss) { return sum_losses(loss); }, [this] { sum_replicas(); }, part.copy,
          part.copies};
}

bool NcclTraining::runs(std::int32_t stage) const {
  return machine_.runs(schedule_.rank_of_stage[static_cast<std::size_t>(stage)]);
}

void NcclTraining::enqueue(InstructionId id, void* stream) {
  const Instruction& instruction = program_.instructions[id];
  const bool reduces =
      instruction.op.kind == OpKind::kReduceGrad && instruction.role == Role::kWork;
  if (!reduces) return training_.enqueue(id, stream);
  if (runs(instruction.op.stage) && wires_->is_shared(instruction.op.stage))
    sum(instruction.op.stage, stream);
}

NcclRanks::Buffer NcclTraining::find(const Transfer& transfer) const {
  const Instruction& instruction = program_.instructions[transfer.id];
  if (!is_message(instruction)) return {};
  const GpuMessage message = training_.find_message(instruction.op);
  return buffer_of(transfer.sends ? message.from : message.to);
}

void NcclTraining::sum(std::int32_t stage, void* stream) const {
  std::vector<NcclRanks::Buffer> gradients;
  for (const GpuWeight& weight : training_.weights().stage(stage).weights)
    gradients.push_back(buffer_of(weight.grad));
  wires_->sum(stage, gradients, stream);
}

/// In the order of the model's stages, which all processes keep to.
void NcclTraining::sum_replicas() const {
  const GpuHandle stream = machine_.gpu().create_stream(0, nullptr);
  const std::int32_t originals = schedule_.stages_per_pipeline();
  for (std::int32_t original = 0; original < originals; ++original)
    for (std::int32_t stage = original; stage < schedule_.stages(); stage += originals)
      if (runs(stage) && wires_->is_shared(stage) &&
          !reduced_inside_[static_cast<std::size_t>(stage)])
        sum(stage, stream.get());
  wires_->await(stream);
}

double NcclTraining::sum_losses(double part) const {
  BlobWriter writer;
  writer.write(part);
  double sum = 0;
  for (const Blob& blob : outside_.share(writer.take())) sum += BlobReader(blob).read<double>();
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
  for (const Blob& blob : outside_.share(writer.take())) {
    BlobReader reader(blob);
    for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
      std::vector<Matrix> weights = read_matrices(reader);
      std::vector<Matrix> gradients = read_matrices(reader);
      if (!weights.empty()) result.stages[stage].weights = std::move(weights);
      if (!gradients.empty()) result.gradients[stage] = std::move(gradients);
    }
  }
  return result;
}

std::vector<Bytes> NcclTraining::peak_bytes() const {
  std::vector<Bytes> peaks = training_.peak_bytes();
  BlobWriter writer;
  writer.write_all(peaks);
  for (const Blob& blob : outside_.share(writer.take())) {
    const std::vector<Bytes> told = BlobReader(blob).read_all<Bytes>();
    for (std::size_t rank = 0; rank < peaks.size(); ++rank)
      peaks[rank] = std::max(peaks[rank], told.at(rank));
  }
  return peaks;
}

}  // namespace bubblescope
