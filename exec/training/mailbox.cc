// Slots, locked per stage.
#include "exec/training/mailbox.h"

#include <utility>

namespace bubblescope::exec {

SlotIndex::SlotIndex(const Schedule& schedule)
    : stages_(schedule.stages()),
      microbatches_(schedule.shape.microbatches),
      slices_(schedule.shape.slices) {}

std::size_t SlotIndex::size() const {
  return static_cast<std::size_t>(2 * stages_ * microbatches_ * slices_);
}

std::size_t SlotIndex::operator()(const Slot& slot) const {
  const std::int64_t row = (slot.direction == Direction::kForward ? 0 : stages_) + slot.stage;
  return static_cast<std::size_t>((row * microbatches_ + slot.microbatch) * slices_ + slot.slice);
}

Mailbox::Mailbox(const Schedule& schedule)
    : index_(schedule),
      slots_(index_.size()),
      locks_(std::make_unique<std::mutex[]>(static_cast<std::size_t>(schedule.stages()))) {}

void Mailbox::put(const Slot& slot, Payload payload) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  slots_[index_(slot)] = std::move(payload);
}

std::optional<Payload> Mailbox::take(const Slot& slot) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  return std::exchange(slots_[index_(slot)], std::nullopt);
}

}  // namespace bubblescope::exec
