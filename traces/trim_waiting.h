// Ranges of the host that wait for their input before they compute, cut down to the computing.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

struct TrimmedWaiting {
  std::size_t ops = 0;
  Nanos most = 0;  ///< taken off one op
};

/// An op computes from when its input has ended: moves the start of each op for which
/// `may_hold_waiting` ([instruction]) holds to the end of the last op that it needs. Clocks must
/// agree. Ends stay.
TrimmedWaiting trim_waiting(const Program& program, const std::vector<bool>& may_hold_waiting,
                            Timeline& timeline);

/// A compute op that begins before one that it needs has ended.
struct EarlyOp {
  InstructionId op = 0;
  InstructionId needed = 0;
  Nanos early = 0;
};

/// The one that is the furthest too early, of those for which `counts` ([instruction]) holds;
/// nothing where each of them waits for its inputs.
std::optional<EarlyOp> earliest_op(const Program& program, const Timeline& timeline,
                                   const std::vector<bool>& counts);

}  // namespace bubblescope
