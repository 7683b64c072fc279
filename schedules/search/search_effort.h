// How long a search may go on.
#pragma once

#include <cstdint>
#include <functional>

namespace bubblescope {

/// Asked now and then; true ends the search with the best so far. May be empty.
using StopRequest = std::function<bool()>;

inline bool stopped(const StopRequest& stop) { return stop && stop(); }

/// Counts timed ops, not seconds: so the same search finds the same on every machine.
struct SearchEffort {
  std::int64_t climb_ops = 6'000'000;  ///< for the local search; one takes about ten nanoseconds
  std::uint64_t seed = 1;
  StopRequest stop = {};
};

}  // namespace bubblescope
