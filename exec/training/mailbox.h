// Activations and gradients that stages pass to each other: one slot per direction, reading stage,
// micro-batch and slice, and where a stage reads several others per stage that it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/training/payload.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

enum class Direction : std::uint8_t { kForward, kBackward };

/// A slot, by the stage that reads it.
struct Slot {
  Direction direction = Direction::kForward;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int32_t slice = 0;
  std::int32_t source = 0;  ///< its number among the stages that this one reads in this direction
};

/// The stages that one reads in a direction: activations of its inputs, gradients of its readers.
std::vector<std::int32_t> sources_of(const Schedule& schedule, Direction direction,
                                     std::int32_t stage);

/// The slots for which an op produces a matrix: an activation if it is a forward, else a gradient.
std::vector<Slot> target_slots(const Schedule& schedule, Direction direction, const Op& op);

/// Numbers the slots of a schedule.
class SlotIndex {
 public:
  explicit SlotIndex(const Schedule& schedule);

  std::size_t size() const;
  std::size_t operator()(const Slot& slot) const;

 private:
  std::int64_t stages_;
  std::int64_t microbatches_;
  std::int64_t slices_;
  std::vector<std::int64_t> first_row_;  ///< [direction, stage], and the end: of its sources
};

/// A set of slots; all functions are thread-safe.
class Mailbox {
 public:
  explicit Mailbox(const Schedule& schedule);

  void put(const Slot& slot, Payload payload);

  /// Removes and returns the content of the slot. Returns nothing if nothing was put there: as on
  /// real hardware, a reader that comes too early gets no error.
  std::optional<Payload> take(const Slot& slot);

 private:
  SlotIndex index_;
  std::vector<std::optional<Payload>> slots_;
  std::unique_ptr<std::mutex[]> locks_;  ///< [stage]
};

}  // namespace bubblescope::exec
