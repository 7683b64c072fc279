// Formats times for people: one unit for a whole picture, round ticks on its axis, short numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct TimeUnit {
  std::string_view name = "ms";
  Nanos nanos = 1'000'000;
};

/// The unit in which a picture of this span is labelled: ns, us, ms, or s from 10 s on.
TimeUnit choose_unit(Nanos span);

/// "12.5": in a unit, with this many decimals. Rounded: files that programs read hold nanoseconds.
std::string format_in_unit(Nanos time, TimeUnit unit, int decimals);

/// Returns the decimals that show every one of these times exactly, or at least four digits of the
/// longest: 0 to 3.
int choose_decimals(const std::vector<Nanos>& times, TimeUnit unit);

/// "33 ms", "1.25 ms", "980 ns": four digits, without trailing zeros.
std::string format_time(Nanos duration);

/// Returns the smallest of 1, 2, 5, 10, 20, 50, ... nanoseconds that is at least `min_step`.
Nanos choose_tick_step(Nanos min_step);

}  // namespace bubblescope::traces
