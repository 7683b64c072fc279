// Limits on the effort of a search.
#pragma once

#include <cstdint>
#include <functional>

namespace bubblescope::schedules {

/// Polled now and then; true ends the search with the best result so far. May be empty.
using StopRequest = std::function<bool()>;

inline bool stopped(const StopRequest& stop) { return stop && stop(); }

/// Effort in timed ops instead of seconds, so that a search finds the same on every machine.
struct SearchEffort {
  std::int64_t climb_ops = 6'000'000;  ///< for the local search; one takes about ten nanoseconds
  std::uint64_t seed = 1;
  StopRequest stop = {};
};

}  // namespace bubblescope::schedules
