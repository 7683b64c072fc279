// Checks whether posted messages can deadlock: in which modes, and how many buffers prevent it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/lower.h"

namespace bubblescope::inline sim {

/// Whether the posted lists deadlock in one mode.
struct ModeVerdict {
  P2pMode mode = P2pMode::kDataflow;
  std::optional<Deadlock> deadlock;
};

/// Whether the posted lists deadlock, for every mode.
struct MessageVerdict {
  std::vector<ModeVerdict> modes;  ///< in the order of the enum; eager with the options' slots
  /// The smallest K with which eager:K cannot deadlock; empty if no number of slots helps.
  std::optional<std::int32_t> eager_slots;
  Problems swapped;  ///< see find_swapped_messages()
};

/// Checks every mode and finds the slots needed, from one dataflow Program that is freed on return.
/// Throws as lower() does.
MessageVerdict check_messages(const ValidSchedule& schedule, const LowerOptions& options = {});

}  // namespace bubblescope::inline sim
