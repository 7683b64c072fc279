// Slots and their locks.
#include "exec/training/mailbox.h"

#include <utility>

namespace bubblescope {

Mailbox::Mailbox(std::int32_t stages, std::int32_t microbatches)
    : stages_(stages),
      microbatches_(microbatches),
      slots_(std::size_t{2} * static_cast<std::size_t>(stages) *
             static_cast<std::size_t>(microbatches)),
      locks_(std::make_unique<std::mutex[]>(static_cast<std::size_t>(stages))) {}

std::size_t Mailbox::index(const Slot& slot) const {
  const std::int64_t row =
      (slot.direction == Direction::kForward ? 0 : stages_) + std::int64_t{slot.stage};
  return static_cast<std::size_t>(row * microbatches_ + slot.microbatch);
}

void Mailbox::put(const Slot& slot, Parcel parcel) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  slots_[index(slot)] = std::move(parcel);
}

std::optional<Parcel> Mailbox::take(const Slot& slot) {
  const std::lock_guard lock(locks_[static_cast<std::size_t>(slot.stage)]);
  return std::exchange(slots_[index(slot)], std::nullopt);
}

}  // namespace bubblescope
