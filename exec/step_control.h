// How processes tell each other that a step goes on, or stops.
#pragma once

#include <cstdint>

#include "exec/backend.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// How long answers are waited for after a stop. A launcher that heard of a death or of Ctrl-C
/// leaves us little time.
inline constexpr Nanos kStopGrace = 2'000'000'000;
inline constexpr Nanos kShortStopGrace = 400'000'000;
inline constexpr Nanos grace_of(Stop reason) {
  return reason == Stop::kInterrupt ? kShortStopGrace : kStopGrace;
}
/// A process shows that it goes on this many times per --timeout.
inline constexpr Nanos kShownPerTimeout = 8;

/// At the head of every word of control.
struct ControlHeader {
  std::uint32_t step = 0;
  Stop stop = Stop::kNone;  ///< kNone: a sign of life
};

}  // namespace bubblescope
