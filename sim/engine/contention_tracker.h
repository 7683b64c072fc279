// Contention: the progress rate of every op that shares a device.
//
// A compute op slows down while other ranks of its device compute too; messages and copies may slow
// down with it. An op's work is its duration alone, in parts of kFullProgressRate per nanosecond;
// its progress rate is the number of parts that it completes per nanosecond.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// Index into Traffic::contended_ops.
using ContendedOpId = std::uint32_t;

/// Work, in parts: kFullProgressRate parts are one nanosecond alone. It needs more than 64 bits,
/// because noise can stretch an op beyond kMaxContendedDuration.
__extension__ typedef __int128 WorkParts;

/// The time to complete the work, rounded up to whole nanoseconds. Uses 64 bits whenever they
/// suffice.
inline Nanos completion_time(WorkParts left, Rate progress_rate) {
  constexpr WorkParts kNarrow = std::numeric_limits<Load>::max() - kFullProgressRate;
  if (left <= kNarrow) return uncontended_time(static_cast<Load>(left), progress_rate);
  return static_cast<Nanos>((left + progress_rate - 1) / progress_rate);
}

/// Tracks running ops; settle() returns those whose progress rate has changed. Refers to the
/// Traffic. An op ends at the first whole nanosecond at which all of its work is done.
class ContentionTracker {
 public:
  explicit ContentionTracker(const Traffic& traffic);

  /// `alone` is its duration while no other rank of its device is busy.
  void begin(ContendedOpId op, Nanos alone, Nanos now);
  void end(ContendedOpId op);

  /// The ops whose end has changed; valid until the next call.
  const std::vector<ContendedOpId>& settle(Nanos now);

  /// When an op will end if nothing changes.
  Nanos end_of(ContendedOpId op) const {
    const State& state = states_[op];
    return state.since + completion_time(state.left, state.progress_rate);
  }

 private:
  struct State {
    WorkParts left = 0;  ///< at `since`
    Nanos since = 0;
    Rate progress_rate = 0;  ///< 0: it has just begun
  };

  /// The number of compute ops that run on a device, by kind.
  using KindCounts = std::array<std::int32_t, kComputeKinds>;

  KindCounts count_kinds(const std::vector<ContendedOpId>& on) const;
  Rate progress_rate_of(ContendedOpId op, KindCounts busy) const;
  void update_progress_rates(std::vector<ContendedOpId>& on, Nanos now);

  const Traffic& traffic_;
  std::vector<State> states_;  ///< per op
  std::vector<std::vector<ContendedOpId>>
      on_;                            ///< per device: its messages and one op per busy rank
  std::vector<std::uint32_t> dirty_;  ///< devices on which anything began or ended
  std::vector<ContendedOpId> changed_;
};

}  // namespace bubblescope::inline sim
