// The callbacks by which a rank that runs alone in its process exchanges messages with the others.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// Callbacks to the other processes, for a process that runs one rank.
struct RemoteHooks {
  std::int32_t here = 0;  ///< the rank that runs in this process
  /// Notifies other ranks that an instruction for which they wait has ended, at time `end`.
  std::function<void(InstructionId, Nanos end)> notify;
  /// Performs a copy to or from the memory of another process. Returns when it is complete or the
  /// step was aborted.
  std::function<void(InstructionId copy)> copy_remote;
  /// Handles messages by record_remote_end() and abort(); returns false if none came.
  std::function<bool()> poll;
};

}  // namespace bubblescope::exec
