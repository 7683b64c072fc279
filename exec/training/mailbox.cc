// Slots, locked per stage.
#include "exec/training/mailbox.h"

#include <utility>

namespace bubblescope::exec {

Mailbox::Mailbox(const Schedule& schedule)
    : stages_(schedule.stages()),
      microbatches_(schedule.shape.microbatches),
      slices_(schedule.shape.slices),
      slots_(static_cast<std::size_t>(std::int64_t{2} * stages_ * microbatches_ * slices_)),
      locks_(std::make_unique<std::mutex[]>(static_cast<std::size_t>(stages_))) {}

std::size_t Mailbox::index(const Slot& slot) const {
  const std::int64_t row =
      (slot.direction == Direction::kForward ? 0 : stages_) + std::int64_t{slot.stage};
  return static_cast<std::size_t>((row * microbatches_ + slot.microbatch) * slices_ + slot.slice);
}

void Mailbox::put(const Slot& slot, Payload payload) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  slots_[index(slot)] = std::move(payload);
}

std::optional<Payload> Mailbox::take(const Slot& slot) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  return std::exchange(slots_[index(slot)], std::nullopt);
}

}  // namespace bubblescope::exec
