// Removes waiting from host ranges, which may wait for their input before they compute.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::traces {

struct TrimmedWaiting {
  Timeline timeline;
  std::size_t ops = 0;
  Nanos largest = 0;  ///< the most that one op lost
};

/// An op computes once its inputs have ended: moves the start of each op for which
/// `may_hold_waiting` ([instruction]) is set to the end of its last dependency. Clocks must agree.
/// Ends stay.
TrimmedWaiting trim_waiting(const Program& program, const std::vector<bool>& may_hold_waiting,
                            Timeline timeline);

/// A compute op that begins before one that it needs has ended.
struct EarlyOp {
  InstructionId op = 0;
  InstructionId needed = 0;
  Nanos early = 0;
};

/// Returns the op that starts too early by the most, among those for which `counts` ([instruction])
/// is set; nullopt where each of them waits for its inputs.
std::optional<EarlyOp> find_earliest_op(const Program& program, const Timeline& timeline,
                                        const std::vector<bool>& counts);

/// Returns a text such as "1F2 on rank 1 begins 5 ms before its input 0F2 on rank 0 has ended:
/// clocks differ, ...".
std::string describe_early_op(const EarlyOp& early, const Program& program);

}  // namespace bubblescope::traces
