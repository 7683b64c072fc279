// The result of a rank in a step: when its instructions ran, and where it was if the step was
// aborted.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// The time from the start to the end of an instruction, in nanoseconds since the step began.
struct Span {
  InstructionId id = 0;
  Nanos start = 0;
  Nanos end = 0;
};

/// The position of a lane when its step was aborted.
struct BlockedAt {
  InstructionId at = 0;                  ///< the lane's first instruction that has not ended
  bool started = false;                  ///< its work had begun
  std::optional<InstructionId> awaited;  ///< what it waited for; empty if it was about to start
};

/// The reason why a step was aborted.
enum class AbortReason : std::uint8_t { kNone, kFailure, kTimeout, kInterrupt };

/// The result of one rank in one step.
struct RankResult {
  std::vector<Span> spans;  ///< instructions that started; an unfinished one ends at the abort
  std::vector<BlockedAt>
      blocked;  ///< one per lane that did not finish; empty after a complete step
  AbortReason reason = AbortReason::kNone;  ///< the same for all ranks
  std::exception_ptr failure;               ///< the exception that this rank's work threw
};

}  // namespace bubblescope::exec
