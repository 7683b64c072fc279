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
  /// What each takes where no other is in its way; empty: as long as it took here. Messages that
  /// share a link take longer than that.
  std::vector<Nanos> alone;

  Nanos least_duration(InstructionId id) const {
    return alone.empty() ? end[id] - start[id] : alone[id];
  }
};

}  // namespace bubblescope
