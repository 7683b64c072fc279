// Keeps slots, which are locked per stage.
#include "exec/training/mailbox.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/ir/needs.h"

namespace bubblescope::exec {

std::vector<std::int32_t> sources_of(const Schedule& schedule, Direction direction,
                                     std::int32_t stage) {
  std::vector<std::int32_t> sources;
  const auto add = [&](std::int32_t source) { sources.push_back(source); };
  if (direction == Direction::kForward)
    for_each_input(schedule, stage, add);
  else
    for_each_reader(schedule, stage, add);
  return sources;
}

std::vector<Slot> target_slots(const Schedule& schedule, Direction direction, const Op& op) {
  std::vector<Slot> slots;
  const auto add = [&](std::int32_t reader) {
    const std::vector<std::int32_t> sources = sources_of(schedule, direction, reader);
    const auto source = std::find(sources.begin(), sources.end(), op.stage) - sources.begin();
    slots.push_back(
        {direction, reader, op.microbatch, op.slice, static_cast<std::int32_t>(source)});
  };
  if (direction == Direction::kForward)
    for_each_reader(schedule, op.stage, add);
  else
    for_each_input(schedule, op.stage, add);
  return slots;
}

SlotIndex::SlotIndex(const Schedule& schedule)
    : stages_(schedule.stages()),
      microbatches_(schedule.shape.microbatches),
      slices_(schedule.shape.slices),
      first_row_{0} {
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      first_row_.push_back(first_row_.back() + std::ssize(sources_of(schedule, direction, stage)));
}

std::size_t SlotIndex::size() const {
  return static_cast<std::size_t>(first_row_.back() * microbatches_ * slices_);
}

std::size_t SlotIndex::operator()(const Slot& slot) const {
  const std::int64_t place = (slot.direction == Direction::kForward ? 0 : stages_) + slot.stage;
  const std::int64_t row = first_row_[static_cast<std::size_t>(place)] + slot.source;
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
