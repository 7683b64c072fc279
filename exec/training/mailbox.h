// What stages make for each other: a parcel per direction, stage, micro-batch
// and slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/training/parcel.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

enum class Direction : std::uint8_t { kForward, kBackward };

/// Where a matrix lies: at the stage that reads it, or at the one that made it.
struct Slot {
  Direction direction = Direction::kForward;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int32_t slice = 0;
};

/// Slots that any thread may fill and empty.
class Mailbox {
 public:
  explicit Mailbox(const Schedule& schedule);

  void put(const Slot& slot, Parcel parcel);

  /// Empties the slot. What was never put there comes out as nothing: a reader who came too early
  /// is not told, as on real hardware.
  std::optional<Parcel> take(const Slot& slot);

 private:
  std::size_t index(const Slot& slot) const;

  std::int32_t stages_;
  std::int32_t microbatches_;
  std::int32_t slices_;
  std::vector<std::optional<Parcel>> slots_;
  std::unique_ptr<std::mutex[]> locks_;  ///< per stage
};

}  // namespace bubblescope
