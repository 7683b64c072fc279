// A Timeline: when every instruction of a Program started and ended, and who says so.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Parallel to Program::instructions. Times count from the start of the step.
struct Timeline {
  std::string source = "simulated";  ///< "simulated", "cpu", "cuda", "nccl", "kineto", ...
  std::vector<Nanos> start;
  std::vector<Nanos> end;
  /// Why the step broke down, where every rank then stood and what it waited for; empty where it
  /// came to its end. What never started then stands at the last end, with no length.
  std::string breakdown = {};
  /// What each takes where no other is in its way; empty: as long as it took here. Messages that
  /// share a link take longer than that.
  std::vector<Nanos> alone = {};

  Nanos least_duration(InstructionId id) const {
    return alone.empty() ? end[id] - start[id] : alone[id];
  }
};

/// First start and last end of anything, on any rank.
struct StepBounds {
  Nanos start = 0;
  Nanos end = 0;
};
StepBounds step_bounds(const Timeline& timeline);

/// From the first start to the last end.
Nanos makespan_of(const Timeline& timeline);

}  // namespace bubblescope
