// Finds the slots of messages, and checks what arrives.
#include "exec/training/stage_messages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "exec/training/vocabulary_shard.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

Direction direction_of(const Op& message) {
  return message.kind == OpKind::kSendForward ? Direction::kForward : Direction::kBackward;
}

bool has_early_grads(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [&](const RankOrder& ops) {
    return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
      return op.kind == OpKind::kInputGrad && schedule.is_side_stage(op.stage);
    });
  });
}

}  // namespace

StageMessages::StageMessages(const Schedule& schedule, const TrainingOptions& options,
                             const Processes& processes)
    : schedule_(schedule),
      model_(options.model),
      processes_(processes),
      has_early_grads_(bubblescope::exec::has_early_grads(schedule)),
      inbox_(schedule),
      outbox_(schedule) {}

/// A message carries the matrices for all stages of the receiver that read its value.
std::vector<Slot> StageMessages::slots_of(const Instruction& message) const {
  std::vector<Slot> slots = target_slots(schedule_, direction_of(message.op), message.op);
  std::erase_if(slots, [&](const Slot& slot) {
    return schedule_.rank_of(slot.stage, slot.microbatch) != message.peer;
  });
  return slots;
}

void StageMessages::carry(const Instruction& message, Damage damage) {
  Mailbox& box = processes_.runs(message.peer) ? inbox_ : outbox_;
  for (const Slot& slot : slots_of(message))
    if (std::optional<Payload> payload = outbox_.take(slot))
      box.put(slot, seal(std::move(payload->matrix), damage));
}

Blob StageMessages::pack(const Instruction& message) {
  BlobWriter writer;
  for (const Slot& slot : slots_of(message)) {
    const std::optional<Payload> payload = outbox_.take(slot);
    writer.write_all(payload ? bubblescope::exec::pack(*payload) : Blob());
  }
  return writer.take();
}

void StageMessages::unpack(const Instruction& message, BlobReader& reader) {
  for (const Slot& slot : slots_of(message))
    inbox_.put(slot, bubblescope::exec::unpack(reader.read_all<std::byte>()));
}

Matrix StageMessages::take(const Slot& slot, const Op& op, std::int32_t producer) {
  const Positions positions = positions_of(model_.sequence, schedule_.shape.slices, op.slice);
  const std::int32_t rows = model_.batch * positions.count;
  const std::int32_t width = model_.width;
  const std::int32_t columns = slot.direction == Direction::kBackward && has_early_grads_ &&
                                       schedule_.is_side_stage(producer)
                                   ? early_columns(width)
                                   : width;
  std::optional<Payload> payload = inbox_.take(slot);
  if (!payload) return Matrix(rows, columns);  // as if nothing had arrived
  const std::string damage = find_damage(*payload, rows, columns);
  if (damage.empty()) return std::move(payload->matrix);
  const auto rank_text = [&](std::int32_t stage) {
    return std::to_string(schedule_.rank_of(stage, op.microbatch));
  };
  throw Error(Fault::kMachine, "rank " + rank_text(producer) + " sent " + damage +
                                   "; it is the output of stage " + std::to_string(producer) +
                                   " for " + to_string(op) + " of rank " + rank_text(op.stage));
}

std::vector<Matrix> StageMessages::read(Direction direction, const Op& op) {
  std::vector<Matrix> matrices;
  Slot slot{direction, op.stage, op.microbatch, op.slice};
  for (const std::int32_t producer : sources_of(schedule_, direction, op.stage)) {
    matrices.push_back(take(slot, op, producer));
    ++slot.source;
  }
  return matrices;
}

void StageMessages::put(const Slot& slot, const Op& op, Matrix matrix) {
  const bool local =
      schedule_.rank_of(slot.stage, op.microbatch) == schedule_.rank_of(op.stage, op.microbatch);
  (local ? inbox_ : outbox_).put(slot, {std::move(matrix), std::nullopt});
}

void StageMessages::write(Direction direction, const Op& op, Matrix matrix) {
  const std::vector<Slot> slots = target_slots(schedule_, direction, op);
  for (std::size_t at = 0; at + 1 < slots.size(); ++at) put(slots[at], op, matrix);
  put(slots.back(), op, std::move(matrix));
}

void StageMessages::write_grads(const Op& op, std::vector<Matrix> grads) {
  const std::vector<Slot> slots = target_slots(schedule_, Direction::kBackward, op);
  for (std::size_t at = 0; at < slots.size(); ++at) put(slots[at], op, std::move(grads[at]));
}

}  // namespace bubblescope::exec
