// Can posted messages block for ever? In which modes, and how many buffers would it take?
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/lower.h"

namespace bubblescope {

/// The least K with which eager:K cannot block for ever; nothing where no number of slots helps.
/// The mode and the slots of the options do not matter. Throws what lower() throws.
std::optional<std::int32_t> eager_slots_needed(const ValidSchedule& schedule,
                                               const LowerOptions& options = {});

/// What one mode makes of the posted lists.
struct ModeVerdict {
  P2pMode mode = P2pMode::kDataflow;
  std::optional<Deadlock> deadlock;
};

/// The outcome of posted messages in every mode.
struct MessageVerdict {
  std::vector<ModeVerdict> modes;  ///< in the order of the enum; eager with the options' slots
  std::optional<std::int32_t> eager_slots;  ///< as eager_slots_needed() says
};

/// Every mode and the slots that are needed, from one dataflow Program, which is gone when this
/// returns. Throws what lower() throws.
MessageVerdict check_messages(const ValidSchedule& schedule, const LowerOptions& options = {});

/// Its modes alone.
std::vector<ModeVerdict> check_modes(const ValidSchedule& schedule,
                                     const LowerOptions& options = {});

}  // namespace bubblescope
