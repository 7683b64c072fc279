// A Timeline: when every instruction of a Program started and ended, and the source of these times.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// Indexed like Program::instructions. Times count from the start of the step.
struct Timeline {
  std::string source = "simulated";  ///< "simulated", "cpu", "cuda", "nccl", "kineto", ...
  std::vector<Nanos> start;
  std::vector<Nanos> end;
  /// Why the step was aborted, and what every rank was waiting for; empty if it completed.
  /// Instructions that never started have zero length at the last end.
  std::string breakdown = {};
  /// The durations without contention; empty: the same as here. Messages that share a link take
  /// longer.
  std::vector<Nanos> uncontended = {};
  /// Whether a profiler recorded it, so that ops may have waited for what the Program does not say.
  bool is_imported = false;
  /// Whether messages that take no time may have taken some that was not recorded.
  bool may_lack_messages = false;
  /// Per instruction, how long its lane rests before it, even if all that it waits for has ended
  /// (price_gaps() in sim/model/cost_model.h); empty: not at all, or not known.
  std::vector<Nanos> gaps = {};

  Nanos gap_before(InstructionId id) const { return gaps.empty() ? 0 : gaps[id]; }
  Nanos uncontended_duration(InstructionId id) const {
    return uncontended.empty() ? end[id] - start[id] : uncontended[id];
  }
};

/// The first start and the last end of anything, on any rank.
struct StepBounds {
  Nanos start = 0;
  Nanos end = 0;
};
StepBounds find_step_bounds(const Timeline& timeline);

/// The time from the first start to the last end.
Nanos compute_makespan(const Timeline& timeline);

}  // namespace bubblescope::inline sim
