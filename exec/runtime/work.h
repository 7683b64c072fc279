// What instructions do when a backend runs them, and what their messages carry.
#pragma once

#include <functional>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/runtime/injection.h"
#include "exec/runtime/step_clock.h"
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

/// How what a message carries goes from one process to another, and what a copy moves to the memory
/// of another process and back. Empty functions: they carry nothing.
struct Cargo {
  /// On the sender: of a message after its work; of a copy before, what it brings to its keeper.
  std::function<Blob(InstructionId)> pack;
  /// On the receiver of a message; on the copying rank, the keeper's answer.
  std::function<void(InstructionId, std::span<const std::byte>)> unpack;
  /// On the keeper: takes what a copy brings and answers with what it takes away.
  std::function<Blob(InstructionId copy, std::span<const std::byte>)> keep = {};
};

}  // namespace bubblescope
