// Contention on devices: ops slow down while other ranks of the same device compute, and so do
// their messages and copies.
//
// Example: two ranks share a GPU and {1.8} is the slowdown of a forward. Alone it takes 10 ms;
// while the other rank computes too, 18 ms. If weight gradients load what forwards need, and the
// weight of a forward beside one is 1.25, it takes 20 ms while the other rank runs one: it is
// slowed by 1.25 times 80 %.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/op.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// The factor by which an op is longer with 2, 3, ... busy ranks on its device, including its own;
/// with more ranks than entries, the last one. At least 1 each; empty: no slowdown.
using Slowdown = std::vector<double>;

struct Contention {
  std::int32_t ranks_per_device = 1;  ///< that many adjacent ranks share a device
  std::vector<std::array<Slowdown, kComputeKinds>> stages;  ///< [stage][kind]
  Slowdown message = {};  ///< for messages, by 1, 2, ... busy ranks on the sender's device
  Slowdown copy = {};     ///< for EVICT and LOAD, by 1, 2, ... busy ranks on their rank's device
  std::optional<KindWeights> kind_weights = {};  ///< by what runs beside what; unless set, all 1
};

/// The longest op that can be contended, because its progress is counted in fractions of a
/// nanosecond.
inline constexpr Nanos kMaxContendedDuration = 3'600'000'000'000;

/// Returns the progress rate of an op with this slowdown, rounded to a whole number of parts per
/// nanosecond.
Rate progress_rate_of(double slowdown);

/// Adds contention to the compute ops, copies and messages of a Program, except messages that flow
/// through shared resources. Their fixed times become their durations alone. Throws Error for an op
/// that is too long or whose stage the contention does not cover.
Traffic with_contention(Traffic traffic, const Program& program, const Contention& contention);

}  // namespace bubblescope::inline sim
