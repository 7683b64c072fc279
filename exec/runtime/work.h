// The work of instructions on a backend, and the payloads of their messages.
#pragma once

#include <functional>
#include <span>

#include "exec/runtime/blob.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/injection.h"

namespace bubblescope::exec {

/// An instruction that may run now, on the thread of its lane.
struct WorkItem {
  InstructionId id = 0;
  Nanos ready = 0;  ///< when its last dependency ended, possibly a little ago
  const StepClock& clock;
  Damage damage = Damage::kNone;  ///< for messages: damage to inject
};

/// Performs an instruction and returns the time at which it ended. An instruction without a lane
/// may return a future time: a message that is still in flight. Called by many threads at once; an
/// exception stops all ranks.
using Work = std::function<Nanos(const WorkItem& item)>;

/// Serializes the payloads of messages and copies between processes. Empty functions: there is no
/// payload.
struct PayloadCodec {
  /// On the sender: the payload of a message, after its work; or the data that a copy sends to its
  /// offload target.
  std::function<Blob(InstructionId)> pack;
  /// On the receiver of a message, or on the copying rank for the offload target's reply.
  std::function<void(InstructionId, std::span<const std::byte>)> unpack;
  /// On the offload target: takes the data of a copy and returns the reply.
  std::function<Blob(InstructionId copy, std::span<const std::byte>)> keep = {};
};

}  // namespace bubblescope::exec
