// The work that instructions do on a host backend, and the payloads of their messages.
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
  Nanos ready = 0;  ///< when its last dependency ended
  const StepClock& clock;
  Damage damage = Damage::kNone;  ///< damage to inject into a message
};

/// Performs an instruction and returns the time at which it ended. An instruction without a lane
/// may return a future time, for a message that is still in flight. Many threads call it at once.
/// An exception aborts the step on all ranks.
using Work = std::function<Nanos(const WorkItem& item)>;

/// Serializes the payloads of messages and of copies between processes. Empty functions mean that
/// there is no payload.
struct PayloadCodec {
  /// On the sender: makes the payload of a message, or the data that a copy sends to its offload
  /// target.
  std::function<Blob(InstructionId)> pack;
  /// On the receiver: stores the payload of a message, or the offload target's reply to a copy.
  std::function<void(InstructionId, std::span<const std::byte>)> unpack;
  /// On the offload target: handles the data of a copy and returns the reply.
  std::function<Blob(InstructionId copy, std::span<const std::byte>)> keep = {};
};

}  // namespace bubblescope::exec
