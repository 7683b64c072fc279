// Ranks that share a device: their ops get slower while others compute there too, and so do their
// messages and copies.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/ir/op.h"
#include "sim/model/traffic.h"

namespace bubblescope {

/// How many times longer an op takes with 2, 3, ... ranks of its device at work, its own among
/// them; with more, as with the last. 1 or more; empty: others do not slow it.
using Slowdown = std::vector<double>;

struct Contention {
  std::int32_t ranks_per_device = 1;                        ///< neighbouring ranks share one
  std::vector<std::array<Slowdown, kComputeKinds>> stages;  ///< [stage][kind]
  Slowdown message = {};  ///< of messages, by 1, 2, ... ranks at work on the sender's device
  Slowdown copy = {};     ///< of EVICT and LOAD, by 1, 2, ... ranks at work on their rank's device
};

/// The longest op that may be slowed: its progress is counted in parts of nanoseconds.
inline constexpr Nanos kLongestInCompany = 3'600'000'000'000;

/// Lets a Program's compute ops slow each other, its messages and its copies, but for messages that
/// flow through what they share. Their fixed times are what they take alone. Throws Error for an op
/// that is too long, or of a stage that the contention does not cover.
Traffic with_company(Traffic traffic, const Program& program, const Contention& contention);

}  // namespace bubblescope
