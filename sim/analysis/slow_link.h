// Finds the link whose messages take far longer than others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// The messages between two ranks, of one replica or of all.
struct SlowLink {
  std::optional<std::int32_t> replica = {};  ///< counted from 0; empty: of all of them
  std::int32_t from = 0;
  std::int32_t to = 0;
  bool both_ways = false;  ///< whether messages back are slow as well
  Nanos time = 0;          ///< the median
  Nanos usual = 0;         ///< the median of all messages
};

/// The slowest link, if three quarters of its messages take twice the usual time or more.
std::optional<SlowLink> find_slow_link(std::span<const ReplicatedStep> steps);

/// No message of the link, there and back, takes longer than usual.
Counterfactual with_usual_link(const SlowLink& link);

}  // namespace bubblescope::inline sim
