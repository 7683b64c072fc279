// What instructions do when a backend runs them, and what their messages carry.
#pragma once

#include <functional>
#include <span>

#include "exec/blob.h"
#include "exec/injection.h"
#include "exec/step_clock.h"
#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// One instruction that may run now, on its lane's thread.
struct Turn {
  InstructionId id = 0;
  Nanos ready = 0;  ///< when the last of what it waited for ended; may be a little ago
  const StepClock& clock;
  Damage damage = Damage::kNone;  ///< what is to happen to a message
};

/// Does what an instruction asks for and returns when it ended. An instruction without a lane may
/// name a time to come: a message that is still on its way. Called by many threads at once; what it
/// throws stops every rank.
using Work = std::function<Nanos(const Turn& turn)>;

/// How what a message carries goes from one process to another. Empty functions: it carries
/// nothing.
struct Cargo {
  std::function<Blob(InstructionId message)> pack;  ///< on the sender, after its work
  std::function<void(InstructionId message, std::span<const std::byte>)> unpack;
};

}  // namespace bubblescope
