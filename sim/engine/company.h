// Contention: the progress rate of every op that shares a device.
//
// A compute op slows down while other ranks of its device compute too; messages and copies may slow
// down with it. An op's work is its duration alone, in parts of kWholePace per nanosecond; its
// progress rate is the number of parts that it completes per nanosecond.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/model/traffic.h"

namespace bubblescope {

/// Index into Traffic::company.
using CompanyId = std::uint32_t;

/// Work, in parts: kWholePace parts are one nanosecond alone. It needs more than 64 bits, because
/// noise can stretch an op beyond kLongestInCompany.
__extension__ typedef __int128 Parts;

/// The time to complete the work, rounded up to whole nanoseconds. Uses 64 bits whenever they
/// suffice.
inline Nanos time_for(Parts left, Rate pace) {
  constexpr Parts kNarrow = std::numeric_limits<Load>::max() - kWholePace;
  if (left <= kNarrow) return time_alone(static_cast<Load>(left), pace);
  return static_cast<Nanos>((left + pace - 1) / pace);
}

/// Tracks running ops; settle() returns those whose progress rate has changed. Refers to the
/// Traffic. An op ends at the first whole nanosecond at which all of its work is done.
class Company {
 public:
  explicit Company(const Traffic& traffic);

  /// `alone` is its duration while no other rank of its device is busy.
  void begin(CompanyId op, Nanos alone, Nanos now);
  void end(CompanyId op);

  /// The ops whose end has changed; valid until the next call.
  const std::vector<CompanyId>& settle(Nanos now);

  /// When an op will end if nothing changes.
  Nanos end_of(CompanyId op) const {
    const State& state = states_[op];
    return state.since + time_for(state.left, state.pace);
  }

 private:
  struct State {
    Parts left = 0;  ///< at `since`
    Nanos since = 0;
    Rate pace = 0;  ///< 0: it has just begun
  };

  void set_paces(std::vector<CompanyId>& on, Nanos now);

  const Traffic& traffic_;
  std::vector<State> states_;               ///< per op
  std::vector<std::vector<CompanyId>> on_;  ///< per device: its messages and one op per busy rank
  std::vector<std::uint32_t> dirty_;        ///< devices on which anything began or ended
  std::vector<CompanyId> changed_;
};

}  // namespace bubblescope
