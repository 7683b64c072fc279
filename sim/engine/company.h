// Ops in company: how fast each one of a device's ops and messages goes on, at one moment.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/model/traffic.h"

namespace bubblescope {

/// Index into Traffic::company.
using CompanyId = std::uint32_t;

/// Parts of an op's work, kWholePace to a nanosecond. Noise stretches ops beyond what
/// kLongestInCompany lets through: of hours, 64 bits cannot count the parts.
__extension__ typedef __int128 Parts;

/// The first whole nanosecond at which so much is done. Divided in 64 bits wherever it fits.
inline Nanos time_for(Parts left, Rate pace) {
  constexpr Parts kNarrow = std::numeric_limits<Load>::max() - kWholePace;
  if (left <= kNarrow) return time_alone(static_cast<Load>(left), pace);
  return static_cast<Nanos>((left + pace - 1) / pace);
}

/// Ops begin and end; settle() says which of them go on at another pace from now on. Refers to the
/// Traffic. An op ends at the first whole nanosecond at which all of it is done.
class Company {
 public:
  explicit Company(const Traffic& traffic);

  /// `alone` is what it takes while no other rank of its device is busy.
  void begin(CompanyId op, Nanos alone, Nanos now);
  void end(CompanyId op);

  /// The ops whose end has changed; valid until the next call.
  const std::vector<CompanyId>& settle(Nanos now);

  /// When an op will have ended if nothing changes any more.
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
  std::vector<std::vector<CompanyId>> on_;  ///< per device: one op per busy rank, and messages
  std::vector<std::uint32_t> dirty_;        ///< devices on which anything began or ended
  std::vector<CompanyId> changed_;
};

}  // namespace bubblescope
