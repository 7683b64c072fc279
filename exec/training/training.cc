// Trains by the ops of a schedule.
#include "exec/training/training.h"

#include <utility>

#include "exec/training/matrix_blob.h"
#include "exec/training/program_updates.h"

namespace bubblescope::exec {

Training::Training(const Schedule& schedule, const Program& program, const TrainingOptions& options,
                   const Processes& processes)
    : program_(program),
      stages_(schedule, program, options, processes),
      messages_(schedule, stages_.options(), processes),
      exchange_(program, processes),
      passes_(stages_, messages_),
      shard_passes_(stages_, messages_),
      offloaded_(stages_) {}

Work Training::work() {
  return [this](const WorkItem& item) {
    run(item);
    return item.clock.now();
  };
}

PayloadCodec Training::payload_codec() {
  return {
      [this](InstructionId message) { return pack(message); },
      [this](InstructionId message, std::span<const std::byte> bytes) { unpack(message, bytes); },
      [this](InstructionId copy, std::span<const std::byte> bytes) {
        return offloaded_.keep(program_.instructions[copy], bytes);
      }};
}

bool Training::is_of_shard(const Instruction& instruction) const {
  return stages_.schedule().is_side_stage(instruction.op.stage);
}

Blob Training::pack(InstructionId message) {
  const Instruction& instruction = program_.instructions[message];
  if (stages_.has_program_updates() && publishes_gradients(instruction))
    return exchange_.pack(message);
  if (is_copy(instruction.op.kind)) return offloaded_.pack(instruction);
  if (is_message(instruction)) return messages_.pack(instruction);
  return is_of_shard(instruction) ? shard_passes_.exchange().pack(instruction.op) : Blob();
}

void Training::unpack(InstructionId message, std::span<const std::byte> bytes) {
  const Instruction& instruction = program_.instructions[message];
  BlobReader reader(bytes);
  if (publishes_gradients(instruction))
    exchange_.put(message, read_matrices(reader));
  else if (is_copy(instruction.op.kind))
    offloaded_.unpack(instruction, bytes);
  else if (is_message(instruction))
    messages_.unpack(instruction, reader);
  else
    shard_passes_.exchange().put(instruction.op, {read_matrix(reader)});
}

void Training::run(const WorkItem& item) {
  const Instruction& instruction = program_.instructions[item.id];
  if (is_message(instruction)) return messages_.carry(instruction, item.damage);
  if (is_of_shard(instruction)) return shard_passes_.run(instruction);
  const Op& op = instruction.op;
  if (op.kind == OpKind::kForward) return passes_.compute_forward(op);
  if (op.kind == OpKind::kRecompute) return passes_.recompute_forward(op);
  if (gives_input_grad(op.kind)) passes_.compute_input_grad(op);
  if (makes_weight_grad(op.kind)) passes_.compute_weight_grad(op);
  if (op.kind == OpKind::kEvict) return offloaded_.move_out(instruction);
  if (op.kind == OpKind::kLoad) return offloaded_.move_back(instruction);
  if (!stages_.has_program_updates()) return;
  if (op.kind == OpKind::kReduceGrad) reduce(item.id);
  if (op.kind == OpKind::kOptimizer) stages_.update(instruction);
}

/// A post publishes this rank's gradients, a join their sum, and the work takes the sum.
void Training::reduce(InstructionId id) {
  const Instruction& reduction = program_.instructions[id];
  std::vector<Matrix>& gradients = stages_.gradients_of(reduction);
  if (!publishes_gradients(reduction)) {
    if (exchange_.sums(id)) gradients = exchange_.sum(id);
    return;
  }
  if (exchange_.sums(id)) return exchange_.put(id, exchange_.sum(id));
  std::vector<Matrix> zeros = zeros_like(gradients);
  exchange_.put(id, std::exchange(gradients, std::move(zeros)));
}

void Training::finish_step() {
  stages_.finish_step();
  shard_passes_.exchange().clear();
}

}  // namespace bubblescope::exec
